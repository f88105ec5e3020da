// The grammar as VS Code reads it, over every rule that ships.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";

const require = createRequire(import.meta.url);
const oniguruma = require("vscode-oniguruma");
const textmate = require("vscode-textmate");

const here = join(import.meta.dirname, "..");
const grammarPath = join(here, "syntaxes", "toll.tmLanguage.json");
const wasm = readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
const onigLib = oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength)).then(() => ({
  createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
  createOnigString: (text) => new oniguruma.OnigString(text),
}));
const registry = new textmate.Registry({
  onigLib,
  loadGrammar: async () => textmate.parseRawGrammar(readFileSync(grammarPath, "utf8"), grammarPath),
});

async function tokens(text) {
  const grammar = await registry.loadGrammar("source.toll");
  let state = textmate.INITIAL;
  return text.split("\n").flatMap((line) => {
    const read = grammar.tokenizeLine(line, state);
    state = read.ruleStack;
    return read.tokens.map((each) => ({
      text: line.slice(each.startIndex, each.endIndex),
      scope: each.scopes.at(-1),
      depth: each.scopes.length,
    }));
  });
}

const rules = join(here, "..", "..", "rules");
for (const file of readdirSync(rules, { recursive: true }).filter((each) => each.endsWith(".rule"))) {
  test(`each word of ${file} has its scope`, async () => {
    for (const each of await tokens(readFileSync(join(rules, file), "utf8"))) {
      if (each.depth > 1) continue; // inside something that has one
      assert.doesNotMatch(each.text, /^\s*(condition|when|then|let|test|given|expect|signal|"|#|@)/);
    }
  });
}

test("words, strings, numbers, lists and actions have scopes of their own", async () => {
  const sample = readFileSync(join(here, "..", "linguist", "sample.rule"), "utf8");
  const found = new Map((await tokens(sample)).map((each) => [each.text, each.scope]));
  assert.equal(found.get("condition"), "keyword.control.toll");
  assert.equal(found.get("deny"), "support.constant.action.toll");
  assert.equal(found.get("@partners"), "variable.other.list.toll");
  assert.equal(found.get("1h"), "constant.numeric.toll");
  assert.equal(found.get("count"), "support.function.toll");
  assert.equal(found.get("/curl|python/i"), "string.regexp.toll");
  assert.equal(found.get("currency"), "support.variable.toll");
});
