"""What a new machine does at its first start."""

USER = "eventsql"


def user_data(public_key: str) -> str:
    """A cloud-config: the user with key-only ssh, no password and no root login, and Docker for this user.

    The key comes from the account. It is quoted, since its comment may hold anything.
    """
    key = public_key.strip().replace("\\", "\\\\").replace('"', '\\"')
    return f"""#cloud-config
disable_root: true
ssh_pwauth: false
users:
  - name: {USER}
    gecos: EventSQL benchmarks
    shell: /bin/bash
    lock_passwd: true
    ssh_authorized_keys:
      - "{key}"
package_update: true
packages:
  - docker.io
runcmd:
  - [usermod, -a, -G, docker, {USER}]
  - [systemctl, enable, --now, docker]
"""
