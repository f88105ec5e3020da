// Starts `toll lsp` and shows what its lenses say; everything else is the server's.

import * as vscode from "vscode";
import { LanguageClient, type ServerOptions } from "vscode-languageclient/node";

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const said = vscode.window.createOutputChannel("Toll");
  context.subscriptions.push(
    said,
    vscode.commands.registerCommand("toll.restart", () => restart(said)),
    vscode.workspace.onDidChangeConfiguration((change) =>
      change.affectsConfiguration("toll") ? restart(said) : undefined,
    ),
  );
  await start(said);
}

export function deactivate(): Promise<void> | undefined {
  return client?.stop();
}

async function restart(said: vscode.OutputChannel): Promise<void> {
  await client?.stop();
  await start(said);
}

async function start(said: vscode.OutputChannel): Promise<void> {
  const settings = vscode.workspace.getConfiguration("toll");
  const command = settings.get<string>("command", "toll");
  client = new LanguageClient("toll", "Toll", server(command, settings), {
    documentSelector: [{ language: "toll" }],
    outputChannel: said,
    middleware: {
      // A lens answers with text of several lines: it is read in the output, not in a notification.
      async executeCommand(name, args, next) {
        const answer: unknown = await next(name, args);
        if (typeof answer === "string") {
          said.appendLine(answer);
          said.show(true);
        }
        return answer;
      },
    },
  });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    void vscode.window.showErrorMessage(
      `${command} lsp could not be started: pip install 'tollkeeper[editor]', or set toll.command. ${String(error)}`,
    );
  }
}

function server(command: string, settings: vscode.WorkspaceConfiguration): ServerOptions {
  const account = settings.get<string>("account", "");
  const data = settings.get<string>("data", "");
  const url = settings.get<string>("url", "");
  const keyFile = settings.get<string>("keyFile", "");
  const args = ["lsp"];
  if (account) args.push("--account", account);
  if (data) args.push("--data", data);
  if (url) args.push("--url", url);
  if (keyFile) args.push("--key-file", keyFile);
  return { command, args, options: { cwd: vscode.workspace.workspaceFolders?.[0]?.uri.fsPath } };
}
