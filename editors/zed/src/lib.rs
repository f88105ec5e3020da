use zed_extension_api as zed;

struct Toll;

impl zed::Extension for Toll {
    fn new() -> Self {
        Toll
    }

    fn language_server_command(
        &mut self,
        _server: &zed::LanguageServerId,
        worktree: &zed::Worktree,
    ) -> zed::Result<zed::Command> {
        let command = worktree
            .which("toll")
            .ok_or("there is no `toll` on the path: pip install 'tollkeeper[editor]'")?;
        Ok(zed::Command {
            command,
            args: vec!["lsp".into()],
            env: worktree.shell_env(),
        })
    }
}

zed::register_extension!(Toll);
