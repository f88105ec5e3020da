// The editor: CodeMirror over the form's own text field, with what the service finds and knows.
"use strict";

addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("editor");
  const field = document.getElementById("text");
  const host = document.createElement("div");
  host.className = "editor-host";
  field.before(host);
  // A style sheet of a shadow root needs no leave of the page's policy.
  const root = host.attachShadow({ mode: "open" });
  field.hidden = true;
  field.required = false;

  const post = async (address) => {
    const answer = await fetch(address, {
      method: "POST",
      body: new URLSearchParams({ text: view.state.doc.toString() }),
    });
    return answer.ok ? answer.json() : null;
  };
  let words = null;
  const vocabulary = async () => {
    if (words === null) {
      const answer = await fetch(form.dataset.vocabulary);
      words = answer.ok ? await answer.json() : {};
    }
    return words;
  };
  const view = rules.editor({
    root,
    text: field.value,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    label: field.getAttribute("aria-label"),
    changed: (text) => {
      field.value = text;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    },
    check: () => post(form.dataset.check),
    vocabulary,
  });
  document.getElementById("format").addEventListener("click", async () => {
    const found = await post(form.dataset.check);
    if (found?.formatted) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: found.formatted } });
    }
  });
  form.addEventListener("submit", () => {
    field.value = view.state.doc.toString();
  });
});
