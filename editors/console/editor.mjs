import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, syntaxHighlighting, indentUnit } from "@codemirror/language";
import { lintGutter, linter } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { words } from "./words.mjs";

const keywords = new Set(words);

const language = StreamLanguage.define({
  name: "rule",
  token(stream) {
    if (stream.match(/#.*/)) return "comment";
    if (stream.match(/"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/\/(?:[^/\\\s]|\\.)(?:[^/\\]|\\.)*\/i?/)) return "regexp";
    if (stream.match(/\d[\d_.]*(?:ms|s|m|h|d)?\b/)) return "number";
    if (stream.match(/@[a-z_]\w*/)) return "variableName";
    const word = stream.match(/[A-Za-z_][\w.]*/);
    if (word) return keywords.has(word[0]) ? "keyword" : null;
    stream.next();
    return null;
  },
  languageData: { commentTokens: { line: "#" } },
});

const place = (doc, line, column) => {
  const at = doc.line(Math.min(Math.max(line, 1), doc.lines));
  return Math.min(at.from + column - 1, at.to);
};

const theme = (dark) => {
  const ink = dark
    ? { key: "#7cb8ff", text: "#9ad6a8", note: "#8b93a0", count: "#f5c26b", name: "#d7a6ff" }
    : { key: "#0b5cad", text: "#1d6b3a", note: "#676d76", count: "#8a5300", name: "#7b2fa8" };
  return [
    EditorView.theme(
      {
        "&": { fontSize: "13px", maxHeight: "75vh", backgroundColor: dark ? "#1b1e24" : "#ffffff", color: dark ? "#e7e8ea" : "#1d2025" },
        ".cm-content": { fontFamily: "ui-monospace, Menlo, Consolas, monospace", lineHeight: "1.6", minHeight: "26rem" },
        ".cm-gutters": { backgroundColor: "transparent", color: ink.note, border: "0" },
        ".cm-cursor": { borderLeftColor: dark ? "#e7e8ea" : "#1d2025" },
        ".cm-activeLine": { backgroundColor: dark ? "#1e2a3a80" : "#eef4fb80" },
      },
      { dark },
    ),
    syntaxHighlighting(
      HighlightStyle.define([
        { tag: tags.keyword, color: ink.key },
        { tag: tags.string, color: ink.text },
        { tag: tags.regexp, color: ink.text },
        { tag: tags.comment, color: ink.note },
        { tag: tags.number, color: ink.count },
        { tag: tags.variableName, color: ink.name },
      ]),
    ),
  ];
};

const complete = (vocabulary) => async (context) => {
  const before = context.matchBefore(/@?[A-Za-z_][\w.]*/);
  if (!before && !context.explicit) return null;
  const known = await vocabulary();
  const options = [];
  for (const [group, names] of Object.entries(known)) {
    if (!Array.isArray(names)) continue;
    for (const each of names) {
      const label = each.name ?? String(each);
      options.push({ label: group === "lists" ? `@${label}` : label, detail: each.type, info: each.doc });
    }
  }
  for (const word of keywords) options.push({ label: word, type: "keyword", boost: -1 });
  return { from: before ? before.from : context.pos, options, validFor: /^@?[\w.]*$/ };
};

export function editor({ root, text, dark, label, changed, check, vocabulary }) {
  const lint = linter(
    async (view) => {
      const found = await check();
      if (!found) return [];
      const { doc } = view.state;
      return found.diagnostics.map(({ span, severity, message, help, fix }) => ({
        from: place(doc, span.line, span.column),
        to: place(doc, span.end_line, span.end_column),
        severity,
        message: help ? `${message}\n${help}` : message,
        actions: fix?.length
          ? [
              {
                name: "✓",
                apply(target) {
                  target.dispatch({
                    changes: fix.map((edit) => ({
                      from: place(doc, edit.span.line, edit.span.column),
                      to: place(doc, edit.span.end_line, edit.span.end_column),
                      insert: edit.replacement,
                    })),
                  });
                },
              },
            ]
          : [],
      }));
    },
    { delay: 350 },
  );
  return new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        EditorView.lineWrapping,
        highlightActiveLine(),
        indentUnit.of("  "),
        EditorState.tabSize.of(2),
        language,
        theme(dark),
        lintGutter(),
        lint,
        autocompletion({ override: [complete(vocabulary)] }),
        keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]),
        EditorView.contentAttributes.of({ "aria-label": label }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) changed(update.state.doc.toString());
        }),
      ],
    }),
  });
}
