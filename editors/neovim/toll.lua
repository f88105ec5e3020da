-- For Neovim 0.11 and newer: put it in ~/.config/nvim/plugin/.
vim.filetype.add({ extension = { rule = "toll" } })
vim.lsp.config("toll", {
  cmd = { "toll", "lsp" },
  filetypes = { "toll" },
  root_markers = { ".git" },
})
vim.lsp.enable("toll")
vim.lsp.inlay_hint.enable(true)
