"""The CLI's process: Claude Code, started for one session, with everything it starts.

It does not know the protocol: what goes through the pipes are bytes.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from ide_bridge.session.process.kept import Command, Kept, Patience
from ide_bridge.session.process.programs import Cli, Launch, arguments, find_cli, session_environment

__all__ = ["Cli", "CliProcess", "Launch", "Patience", "arguments", "find_cli"]

_PATIENCE = Patience()
_PATIENCE_OVER_SOCKET = Patience(finish=1.0)  # it does not read its input, and so does not notice that it ended


class CliProcess(Kept):
    """Claude Code under a keeper; a channel, unless it speaks over a socket of its own."""

    name: ClassVar[str] = "Claude Code"

    @classmethod
    async def start(
        cls,
        cli: Cli,
        launch: Launch,
        *,
        environment: Mapping[str, str],
        keep: Sequence[int] = (),
        sdk_url: str | None = None,
        token: str | None = None,
        patience: Patience | None = None,
    ) -> Self:
        """Start it for a session.

        The keeper holds the descriptors to ``keep`` for as long as anything of the session runs. With ``sdk_url``
        the CLI calls there instead of using its streams, and shows the ``token``.
        """
        command = Command(
            words=(*cli.command, *arguments(launch, cli.version, sdk_url)),
            folder=launch.folder,
            environment=session_environment(environment, token),
            keep=keep,
            streams=sdk_url is None,
            patience=patience or (_PATIENCE if sdk_url is None else _PATIENCE_OVER_SOCKET),
        )
        return await cls.run(command)
