"""The language server: `grammar/services` in terms of the protocol.

Each change sends the whole text, since the protocol's line ends differ from the language's and
files are small. Everything runs on one thread, so a request sees the latest text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from tollkeeper.api.terminal.lsp.cancelling import CancellingProtocol
from tollkeeper.api.terminal.lsp.folder import Folder
from tollkeeper.api.terminal.lsp.lenses import offer_runs
from tollkeeper.api.terminal.lsp.live import (
    LiveAccount,
    LiveFigures,
    LiveService,
    cost_in_words,
    figure_in_words,
)
from tollkeeper.api.terminal.lsp.positions import Places, path_of, units, uri_of
from tollkeeper.api.terminal.lsp.runs import LastRun
from tollkeeper.api.terminal.lsp.teller import Teller, shown_diagnostic
from tollkeeper.engine.offline.paths import SUFFIX
from tollkeeper.engine.programs.source import find_all
from tollkeeper.engine.release import this_release
from tollkeeper.grammar.diagnostics import Edit, Fix
from tollkeeper.grammar.fixes import applied_safely, apply_fixes
from tollkeeper.grammar.formatter import format_file
from tollkeeper.grammar.functions import Function
from tollkeeper.grammar.services.complete import CompletionKind, complete
from tollkeeper.grammar.services.document import Document
from tollkeeper.grammar.services.hover import histories_at, hover, let_types
from tollkeeper.grammar.services.mentions import (
    BadNameError,
    Mention,
    mention_at,
    places,
    refuse_name,
    rename_edits,
)
from tollkeeper.grammar.services.outline import TOKEN_KINDS, OutlineItem, folds, outline, tokens
from tollkeeper.grammar.services.signature import call_at, signature

_COMPLETION_KINDS: dict[CompletionKind, lsp.CompletionItemKind] = {
    "keyword": lsp.CompletionItemKind.Keyword,
    "field": lsp.CompletionItemKind.Field,
    "function": lsp.CompletionItemKind.Function,
    "let": lsp.CompletionItemKind.Variable,
    "list": lsp.CompletionItemKind.Reference,
    "column": lsp.CompletionItemKind.Property,
    "value": lsp.CompletionItemKind.EnumMember,
    "event": lsp.CompletionItemKind.Event,
    "metric": lsp.CompletionItemKind.Property,
    "name": lsp.CompletionItemKind.Text,
}
_SYMBOL_KINDS = {
    "let": lsp.SymbolKind.Variable,
    "list": lsp.SymbolKind.Array,
    "table": lsp.SymbolKind.Object,
    "field": lsp.SymbolKind.Field,
    "metric": lsp.SymbolKind.Property,
    "use": lsp.SymbolKind.Module,
    "test": lsp.SymbolKind.Method,
}


def build_server(
    account: LiveAccount | None = None, service: LiveService | None = None
) -> LanguageServer:
    """Return a server with all features; its `start_io` serves one editor.

    With an account, hovering shows its figures and rules can be backtested on its history; figures
    of a service take precedence.
    """
    server = LanguageServer(
        "toll",
        this_release(),
        text_document_sync_kind=lsp.TextDocumentSyncKind.Full,
        protocol_cls=CancellingProtocol,
    )
    folder = Folder()
    runs: dict[Path, LastRun] = {}
    _follow_texts(server, folder)
    _tell_meanings(server, folder, service or account)
    _tell_places(server, folder)
    _rename_names(server, folder)
    _lay_out(server, folder)
    _offer_fixes(server, folder)
    _show_layers(server, folder, runs)
    offer_runs(server, folder, account, runs)
    return server


def _follow_texts(server: LanguageServer, folder: Folder) -> None:
    """Keep the folder in step with the editor, and publish diagnostics."""
    teller = Teller(server, folder)

    @server.feature(lsp.INITIALIZED)
    async def _on_initialized(_: lsp.InitializedParams) -> None:
        folder.roots = [path_of(uri) for uri in server.workspace.folders]
        if not folder.roots and server.workspace.root_path:
            folder.roots = [Path(server.workspace.root_path)]
        _ask_to_watch(server)
        folder.scan()
        await teller.tell()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def _on_folders_changed(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        removed = {path_of(each.uri) for each in params.event.removed}
        added = [path_of(each.uri) for each in params.event.added]
        folder.roots = [*(root for root in folder.roots if root not in removed), *added]
        folder.scan()
        await teller.tell()

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def _on_opened(params: lsp.DidOpenTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        # An unsaved text has no folder.
        if path.is_absolute() and not any(root in path.parents for root in folder.roots):
            folder.roots.append(path.parent)
        folder.scan()
        await teller.take(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def _on_changed(params: lsp.DidChangeTextDocumentParams) -> None:
        await teller.take(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def _on_saved(params: lsp.DidSaveTextDocumentParams) -> None:
        folder.scan()
        teller.prove(params.text_document.uri)
        await teller.tell()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def _on_watched(_: lsp.DidChangeWatchedFilesParams) -> None:
        folder.scan()
        await teller.tell()

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def _on_closed(params: lsp.DidCloseTextDocumentParams) -> None:
        folder.close(path_of(params.text_document.uri))
        await teller.tell()


def _ask_to_watch(server: LanguageServer) -> None:
    """Ask an editor that can watch files to tell of rule files that others write."""
    workspace = server.client_capabilities.workspace
    watching = workspace and workspace.did_change_watched_files
    if watching and watching.dynamic_registration:
        watched = lsp.DidChangeWatchedFilesRegistrationOptions(
            [lsp.FileSystemWatcher(f"**/*{SUFFIX}")]
        )
        method = lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES
        asked = [lsp.Registration("rule files", method, watched)]
        server.client_register_capability(lsp.RegistrationParams(asked))


def _tell_meanings(
    server: LanguageServer, folder: Folder, source: LiveAccount | LiveService | None
) -> None:
    """Completion, hover, signature help."""

    def complain(text: str) -> None:
        server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, text))

    live_figures = None if source is None else LiveFigures(source.read, complain)

    def place(params: Any) -> tuple[Document, Places, int]:
        document = folder.document(path_of(params.text_document.uri))
        where = Places.of(document.text)
        return document, where, where.offset(params.position)

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION,
        lsp.CompletionOptions(trigger_characters=[".", "@", '"', "["]),
    )
    def _complete(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        document, where, offset = place(params)
        return [
            lsp.CompletionItem(
                label=each.text,
                kind=_COMPLETION_KINDS[each.kind],
                detail=each.type or None,
                documentation=each.doc or None,
                text_edit=lsp.TextEdit(where.range(each.span), each.text),
            )
            for each in complete(document, offset)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def _hover(params: lsp.HoverParams) -> lsp.Hover | None:
        document, where, offset = place(params)
        found = hover(document, offset)
        if found is None:
            return None
        figures = {} if live_figures is None else await live_figures.known()
        name = document.text[found.span.start : found.span.end]
        live = figure_in_words(figures[name]) if name in figures else ""
        sections = [found.markdown, cost_in_words(histories_at(document, offset)), live]
        text = lsp.MarkupContent(lsp.MarkupKind.Markdown, "\n\n".join(filter(None, sections)))
        return lsp.Hover(text, where.range(found.span))

    @server.feature(
        lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(trigger_characters=["(", ","])
    )
    def _signature(params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        document, _, offset = place(params)
        call = call_at(document.text, offset)
        if call is None:
            return None
        shown = [
            lsp.SignatureInformation(
                label=signature(each),
                documentation=each.doc,
                parameters=[lsp.ParameterInformation(one.name) for one in each.parameters]
                if isinstance(each, Function)
                else None,
            )
            for each in call.callables
        ]
        return lsp.SignatureHelp(shown, active_signature=0, active_parameter=call.argument)


def _tell_places(server: LanguageServer, folder: Folder) -> None:
    """Definition, references, symbols, folding."""

    def mention(params: Any) -> Mention | None:
        document = folder.document(path_of(params.text_document.uri))
        return mention_at(document, Places.of(document.text).offset(params.position))

    def located(found: Mention, declarations_only: bool, declarations: bool) -> list[lsp.Location]:
        return [
            lsp.Location(uri_of(path), Places.of(document.text).range(each.span))
            for path, document in folder.naming(found.symbol.name)
            for each in places(found.symbol, document)
            if each.declares or not declarations_only
            if declarations or not each.declares
        ]

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def _definition(params: lsp.DefinitionParams) -> list[lsp.Location]:
        found = mention(params)
        return [] if found is None else located(found, declarations_only=True, declarations=True)

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def _references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        found = mention(params)
        declarations = params.context.include_declaration
        return [] if found is None else located(found, False, declarations)

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def _symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        document = folder.document(path_of(params.text_document.uri))
        where = Places.of(document.text)
        return [
            lsp.DocumentSymbol(
                name=each.name or " ",
                detail=each.title or each.keyword,
                kind=_symbol_kind(each),
                range=where.range(each.span),
                selection_range=where.range(each.name_span),
            )
            for each in outline(document)
        ]

    @server.feature(lsp.WORKSPACE_SYMBOL)
    def _workspace_symbols(params: lsp.WorkspaceSymbolParams) -> list[lsp.WorkspaceSymbol]:
        wanted = params.query.casefold()
        return [
            lsp.WorkspaceSymbol(
                location=lsp.Location(uri_of(path), Places.of(document.text).range(each.name_span)),
                name=each.name,
                kind=_symbol_kind(each),
            )
            for path in folder.paths()
            for document in [folder.document(path)]
            for each in outline(document)
            if wanted in each.name.casefold()
        ]

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    def _folds(params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        document = folder.document(path_of(params.text_document.uri))
        where = Places.of(document.text)
        ranges = [where.range(span) for span in folds(document)]
        return [lsp.FoldingRange(each.start.line, each.end.line) for each in ranges]


def _symbol_kind(item: OutlineItem) -> lsp.SymbolKind:
    return _SYMBOL_KINDS.get(item.keyword, lsp.SymbolKind.Function)


def _rename_names(server: LanguageServer, folder: Folder) -> None:
    """Rename, over the files of the folder."""

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def _prepare(params: lsp.PrepareRenameParams) -> lsp.Range | None:
        document = folder.document(path_of(params.text_document.uri))
        where = Places.of(document.text)
        found = mention_at(document, where.offset(params.position))
        return None if found is None else where.range(found.span)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def _rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        document = folder.document(path_of(params.text_document.uri))
        found = mention_at(document, Places.of(document.text).offset(params.position))
        if found is None:
            return None
        documents = folder.naming(found.symbol.name)
        named = {path: each for path, each in documents if places(found.symbol, each)}
        if not named.keys() <= {*folder.paths()}:
            raise JsonRpcInvalidParams(f"`{found.symbol.name}` comes with the service")
        try:
            refuse_name(found.symbol, params.new_name, named.values())
        except BadNameError as bad:
            raise JsonRpcInvalidParams(str(bad)) from None
        edits = {
            path: rename_edits(found.symbol, params.new_name, each) for path, each in named.items()
        }
        texts = {
            path: apply_fixes(each.text, [Fix("", edits[path])]) for path, each in named.items()
        }
        owner = found.symbol.owner or ("", found.symbol.name)
        error = folder.added_error(texts, (found.symbol.name, owner[1]))
        if error is not None:
            raise JsonRpcInvalidParams(error)
        return lsp.WorkspaceEdit(
            changes={uri_of(path): _edits(each, edits[path]) for path, each in named.items()}
        )


def _edits(document: Document, changes: tuple[Edit, ...]) -> list[lsp.TextEdit]:
    where = Places.of(document.text)
    return [lsp.TextEdit(where.range(each.span), each.replacement) for each in changes]


def _replace_all(document: Document, text: str) -> list[lsp.TextEdit]:
    if text == document.text:
        return []
    where = Places.of(document.text)
    end = where.position(len(document.text))
    return [lsp.TextEdit(lsp.Range(lsp.Position(0, 0), end), text)]


def _lay_out(server: LanguageServer, folder: Folder) -> None:
    """Format, whole and on typing."""

    def laid_out(document: Document) -> list[lsp.TextEdit]:
        if document.parsed.diagnostics:
            return []
        try:
            return _replace_all(document, format_file(document.text))
        except ValueError:  # the formatted text would be too large
            return []

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def _format(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        return laid_out(folder.document(path_of(params.text_document.uri)))

    @server.feature(
        lsp.TEXT_DOCUMENT_ON_TYPE_FORMATTING,
        lsp.DocumentOnTypeFormattingOptions(first_trigger_character="\n"),
    )
    def _format_typed(params: lsp.DocumentOnTypeFormattingParams) -> list[lsp.TextEdit]:
        """Indent a new line like the item or clause that it continues."""
        document = folder.document(path_of(params.text_document.uri))
        where = Places.of(document.text)
        offset = where.offset(lsp.Position(params.position.line, 0))
        before = document.text[:offset].rstrip().rpartition("\n")[2]
        wanted = " " * (len(before) - len(before.lstrip()) or 2 * bool(before))
        line = where.source.line(min(params.position.line + 1, len(where.source.line_starts)))
        present = line[: len(line) - len(line.lstrip())]
        if present == wanted:
            return []
        start = lsp.Position(params.position.line, 0)
        end = lsp.Position(params.position.line, units(present))
        return [lsp.TextEdit(lsp.Range(start, end), wanted)]


def _offer_fixes(server: LanguageServer, folder: Folder) -> None:
    """Code actions."""

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(
            code_action_kinds=[lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll]
        ),
    )
    def _actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        document = folder.document(path_of(uri))
        where = Places.of(document.text)
        first, last = where.offset(params.range.start), where.offset(params.range.end)
        found = [
            lsp.CodeAction(
                title=fix.title,
                kind=lsp.CodeActionKind.QuickFix,
                diagnostics=[shown_diagnostic(where, each)],
                is_preferred=fix.safe and fix is each.fixes[0],
                edit=lsp.WorkspaceEdit(changes={uri: _edits(document, fix.edits)}),
            )
            for each in document.diagnostics
            if each.span.start <= last and first <= each.span.end
            for fix in each.fixes
        ]
        asked, automatic = params.context, lsp.CodeActionTriggerKind.Automatic
        # Editors ask by themselves wherever the cursor goes, and this checks the text up to 50 times.
        is_asked = asked.only is not None or asked.trigger_kind != automatic
        if is_asked and any(fix.safe for each in document.diagnostics for fix in each.fixes[:1]):
            mended = _replace_all(
                document, applied_safely(document.text, partial(find_all, known=folder.known()))
            )
            if mended:
                edit = lsp.WorkspaceEdit(changes={uri: mended})
                kind = lsp.CodeActionKind.SourceFixAll
                found.append(lsp.CodeAction("fix all that is safe", kind=kind, edit=edit))
        return found


def _show_layers(server: LanguageServer, folder: Folder, runs: dict[Path, LastRun]) -> None:
    """Semantic colours and inlay hints."""
    legend = lsp.SemanticTokensLegend(token_types=list(TOKEN_KINDS), token_modifiers=[])

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)
    def _tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        document = folder.document(path_of(params.text_document.uri))
        return lsp.SemanticTokens(list(_numbers(document)))

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def _hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        path = path_of(params.text_document.uri)
        document = folder.document(path)
        where = Places.of(document.text)
        first, last = where.offset(params.range.start), where.offset(params.range.end)
        hints = [
            (let.name.span.end, lsp.InlayHint(where.position(let.name.span.end), f": {words}"))
            for let, words in let_types(document)
        ]
        if path in runs:
            hints += _outcome_hints(document, where, path, runs[path])
        return [hint for place, hint in hints if first <= place <= last]


def _outcome_hints(
    document: Document, where: Places, path: Path, run: LastRun
) -> Iterator[tuple[int, lsp.InlayHint]]:
    """Yield the last run's result after each test's name, while the text or the test's title is
    unchanged.
    """
    missed: dict[str, list[str]] = {}
    covered = run.of_file(path)
    if covered is not None and run.tested == document.text:
        for each in covered.missed:
            missed.setdefault(each.name, []).append(
                f"`{each.text}` never mattered"
                if each.missed == "mattered"
                else f"never {each.missed}"
            )
    outcomes = run.outcomes()
    for item in outline(document):
        place = item.name_span.end
        if item.keyword == "test":
            outcome = outcomes.get(item.name)
            if outcome is not None:
                summary = " ".join(outcome.text.split("\n")[:2])
                label = f" {outcome.outcome}: {summary}" if summary else f" {outcome.outcome}"
                yield place, lsp.InlayHint(where.position(place), label, tooltip=outcome.text)
        elif item.name in missed:
            lines = missed[item.name]
            label = f" {lines[0]}" + (f", {len(lines) - 1} more" if lines[1:] else "")
            hint = lsp.InlayHint(where.position(place), label, tooltip="\n".join(lines))
            yield place, hint


def _numbers(document: Document) -> Iterator[int]:
    """Yield each token as the protocol packs it: lines and units since the previous one, length,
    kind.
    """
    where = Places.of(document.text)
    line = character = 0
    for each in tokens(document):
        at = where.position(each.span.start)
        text = document.text[each.span.start : each.span.end]
        yield from (
            at.line - line,
            at.character - (character if at.line == line else 0),
            units(text),
            TOKEN_KINDS.index(each.kind),
            0,
        )
        line, character = at.line, at.character
