"""Texts of a form, and whether each is taken: images, variables, networks, names, registries, job ids."""

DIGEST = "@sha256:" + "0123456789abcdef" * 4

# The first seed's rule, and what is taken beyond it: registry ports and digests.
IMAGES = {
    "agent:1": True,
    "AGENT:Latest": True,
    "a.b-c_d/e:1.0-rc_1": True,
    "sha256:0123": True,
    "/:.": True,
    "a//b:1": True,
    "../../x:1": True,
    "registry.example.com/team/agent:1.0": True,
    "localhost:5000/a:1": True,
    "registry.example.com:443/team/agent:1.0": True,
    f"agent{DIGEST}": True,
    f"agent:1{DIGEST}": True,
    f"localhost:5000/team/agent{DIGEST}": True,
    f"localhost:5000/team/agent:1{DIGEST}": True,
    "agent": False,
    "agent:": False,
    ":1": False,
    "": False,
    "localhost:5000/agent": False,
    "localhost:/agent:1": False,
    "localhost:123456/agent:1": False,
    "a:1:2": False,
    "a:1/b": False,
    "агент:1": False,
    "agent:\uff11": False,
    "agent:1\n": False,
    "\nagent:1": False,
    "agent:1 ": False,
    "my agent:1": False,
    "agent:1+2": False,
    "https://registry.example.com/agent:1": False,
    "agent:$TAG": False,
    DIGEST: False,
    "agent@sha256:0123": False,
    f"agent{DIGEST}0": False,
    f"agent{DIGEST.upper()}": False,
    f"agent{DIGEST}:1": False,
    "agent@md5:0123456789abcdef0123456789abcdef": False,
}

VARIABLES = {
    "pod_name": True,
    "POD_NAME_": True,
    "1": True,
    "a.b-c": True,
    "with space": True,
    "~": True,
    "a=b": False,
    "tab\t": False,
    "new\nline": False,
    "é": False,
    "\x7f": False,
}

CIDRS = {
    "10.0.0.1/32": True,
    "10.0.0.1/8": True,
    "0.0.0.0/0": True,
    "fd00::/64": True,
    "FD00::1/128": True,
    "10.0.0.1": False,
    "10.0.0.1/33": False,
    "10.0.0.1/08": False,
    "10.0.0.1/-1": False,
    "10.0.0.0/255.0.0.0": False,
    "010.0.0.1/8": False,
    "10.0.0/8": False,
    "fd00::/129": False,
    "fd00::%eth0/64": False,
    "::ffff:10.0.0.1/128": False,
    "proxy.example.com/32": False,
    "": False,
}

NAMES = {"a": True, "a.b-c": True, "A": False, "-a": False, "a-": False, "a..b": False, "a_b": False}

REGISTRIES = {
    "registry.example.com": True,
    "localhost:5000/team": True,
    "https://registry.example.com": False,
    "registry.example.com/": False,
    "host:port": False,
}

JOB_IDS = {
    "01JQRS7X00000000000000000A": True,
    "7ZZZZZZZZZZZZZZZZZZZZZZZZZ": True,
    "8ZZZZZZZZZZZZZZZZZZZZZZZZZ": False,
    "01jqrs7x00000000000000000a": False,
    "01JQRS7X0000000000000000IL": False,
}

# The reserved variables that are set, and how the refusal lists them.
RESERVED = {
    ("POD_NAME",): "Reserved env vars: POD_NAME",
    ("NODE_NAME",): "Reserved env vars: NODE_NAME",
    ("K8S_NAMESPACE",): "Reserved env vars: K8S_NAMESPACE",
    ("POD_NAME", "K8S_NAMESPACE"): "Reserved env vars: K8S_NAMESPACE, POD_NAME",
    ("POD_NAME", "NODE_NAME", "K8S_NAMESPACE"): "Reserved env vars: K8S_NAMESPACE, NODE_NAME, POD_NAME",
}
