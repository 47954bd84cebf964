"""``ide-bridge status`` where sessions live."""

from tests.fakes.session_stage import SessionStage


def test_sessions_that_live_are_shown_and_others_need_no_column():
    with SessionStage() as stage:
        stage.serve()
        assert "sessions" not in stage.command("status").stdout
        session = stage.start("say hello")
        stage.wait_until(session, "idle")
        assert f"{session[:8]} idle: say hello" in " ".join(stage.command("status").stdout.split()[-5:])
        stage.session("stop", session)
        assert "sessions" not in stage.command("status").stdout
