//! Debian's HAProxy and nginx as the pod's proxy, under a user of their own.

use crate::world::{HTTP, POD, World};

/// The user and group of the proxy.
pub(crate) const PROXY: u32 = 1337;

/// Whether the proxy connects to the application with the client's address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binds {
    Client,
    Nothing,
}

/// A transparent socket needs one of these.
const RIGHTS: &str = "+net_admin,+net_raw";

fn as_proxy() -> Vec<String> {
    let ids = [format!("--reuid={PROXY}"), format!("--regid={PROXY}"), "--clear-groups".to_owned()];
    let rights = [format!("--inh-caps={RIGHTS}"), format!("--ambient-caps={RIGHTS}")];
    std::iter::once("setpriv".to_owned()).chain(ids).chain(rights).collect()
}

fn start(world: &mut World, program: &[&str], port: u16) {
    let user = as_proxy();
    let all: Vec<&str> = user.iter().map(String::as_str).chain(program.iter().copied()).collect();
    world.start_listener(&all, port);
}

const HAPROXY: &str = "
defaults
  mode http
  timeout connect 3s
  timeout client 5s
  timeout server 5s
  option http-server-close
";

/// HAProxy in front of the application.
pub(crate) fn haproxy_inbound(world: &mut World, port: u16, binds: Binds) {
    let source = |address| match binds {
        Binds::Client => format!("source {address} usesrc clientip"),
        Binds::Nothing => String::new(),
    };
    let [v4, v6] = POD;
    let config = format!(
        "{HAPROXY}
frontend inbound
  bind :{port} transparent
  bind :::{port} transparent v6only
  http-request set-header X-Via haproxy
  use_backend v6 if {{ src -m ip ::/0 }} !{{ src -m ip 0.0.0.0/0 }}
  default_backend v4
backend v4
  {}
  server application {v4}:{HTTP}
backend v6
  {}
  server application [{v6}]:{HTTP}
",
        source("0.0.0.0"),
        source("[::]:0")
    );
    let file = world.write("haproxy-inbound.cfg", &config);
    start(world, &["haproxy", "-db", "-q", "-f", &file], port);
}

/// HAProxy on the way out. A server without an address is the one that the client wanted.
pub(crate) fn haproxy_outbound(world: &mut World, port: u16) {
    let config = format!(
        "{HAPROXY}
frontend outbound
  bind :{port}
  bind :::{port} v6only
  http-request set-header X-Via haproxy
  default_backend original
backend original
  server destination 0.0.0.0:0
"
    );
    let file = world.write("haproxy-outbound.cfg", &config);
    start(world, &["haproxy", "-db", "-q", "-f", &file], port);
}

/// nginx in front of the application.
pub(crate) fn nginx_inbound(world: &mut World, port: u16, binds: Binds) {
    let bind = match binds {
        Binds::Client => "proxy_bind $remote_addr transparent;",
        Binds::Nothing => "",
    };
    let server = |listen: String, address: &str| {
        format!(
            "server {{ listen {listen}; location / {{ {bind} proxy_set_header X-Via nginx; \
             proxy_pass http://{address}:{HTTP}; }} }}"
        )
    };
    let place = |name: &str| world.file(name).display().to_string();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {};", place(name)))
        .join(" ");
    let config = format!(
        "daemon off; pid {}; error_log stderr crit; events {{}} http {{ access_log off; {temporary}\n{}\n{} }}",
        place("nginx.pid"),
        server(port.to_string(), "$server_addr"),
        server(format!("[::]:{port} ipv6only=on"), "[$server_addr]"),
    );
    let file = world.write("nginx.conf", &config);
    start(world, &["nginx", "-e", "stderr", "-c", &file], port);
}
