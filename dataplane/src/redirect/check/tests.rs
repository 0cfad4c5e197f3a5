use super::*;
use crate::redirect::Method;

fn valid() -> Settings {
    Settings {
        inbound: Some(Inbound {
            method: Method::Tproxy,
            port: 15006,
            ports: Ports::All,
            except_ports: Vec::new(),
        }),
        outbound: Some(Outbound {
            port: 15001,
            destinations: Vec::new(),
            ports: Ports::All,
            except_destinations: Vec::new(),
            except_ports: Vec::new(),
        }),
        exempt: Exempt { uids: vec![1337], ..Exempt::default() },
        routing: Routing::DEFAULT,
    }
}

fn inbound(change: impl FnOnce(&mut Inbound)) -> Settings {
    let mut settings = valid();
    change(settings.inbound.as_mut().unwrap());
    settings
}

fn outbound(change: impl FnOnce(&mut Outbound)) -> Settings {
    let mut settings = valid();
    change(settings.outbound.as_mut().unwrap());
    settings
}

fn exempt(change: impl FnOnce(&mut Exempt)) -> Settings {
    let mut settings = valid();
    change(&mut settings.exempt);
    settings
}

fn ranges(text: &str) -> Vec<PortRange> {
    text.split(',').map(|each| each.parse().unwrap()).collect()
}

fn networks(text: &str) -> Vec<IpNet> {
    text.split(',').map(|each| each.parse().unwrap()).collect()
}

#[test]
fn a_redirect_of_everything_outbound_that_exempts_nobody_is_refused_because_it_loops() {
    let nobody = |destinations: Vec<IpNet>| Settings {
        exempt: Exempt::default(),
        ..outbound(|outbound| outbound.destinations = destinations)
    };
    for (destinations, value) in [(Vec::new(), "all"), (networks("10.0.0.0/8,::/0"), "10.0.0.0/8,::/0")] {
        let problem = nobody(destinations).check().unwrap_err();
        assert_eq!((problem.setting, problem.value.as_str()), (Setting::OutboundDestinations, value));
        assert!(problem.reason.contains("until it fails"), "{problem}");
    }
    assert_eq!(nobody(networks("10.0.0.0/8,fd00::/8")).check(), Ok(()));
    let inbound_only = Settings { outbound: None, ..nobody(Vec::new()) };
    assert_eq!(inbound_only.check(), Ok(()));
    for settings in [
        exempt(|exempt| *exempt = Exempt { gids: vec![0], ..Exempt::default() }),
        exempt(|exempt| *exempt = Exempt { marks: vec![Mark { value: 1, mask: 1 }], ..Exempt::default() }),
        exempt(|exempt| *exempt = Exempt { net_cls: vec![1], ..Exempt::default() }),
        exempt(|exempt| *exempt = Exempt { cgroups: vec!["a/b".to_owned()], ..Exempt::default() }),
    ] {
        assert_eq!(settings.check(), Ok(()));
    }
}

#[test]
fn every_problem_is_found_at_once() {
    let mut settings = inbound(|inbound| inbound.port = 0);
    settings.exempt.net_cls = vec![0];
    settings.routing.table = 254;
    let found: Vec<Setting> = settings.problems().iter().map(|each| each.setting).collect();
    assert_eq!(found, [Setting::InboundPort, Setting::ExemptNetCls, Setting::Table]);
}

#[test]
fn settings_that_cannot_work_are_refused_with_setting_value_and_way_out() {
    let routing =
        |value, mask, table| Settings { routing: Routing { mark: Mark { value, mask }, table }, ..valid() };
    let marks = |value, mask| exempt(|exempt| exempt.marks = vec![Mark { value, mask }]);
    let some = |text| Ports::Some(ranges(text));
    let cgroup = |path: &str| exempt(|exempt| exempt.cgroups = vec![path.to_owned()]);
    for (settings, expected) in [
        (Settings { inbound: None, outbound: None, ..valid() }, "--inbound-port=: nothing is redirected"),
        (inbound(|inbound| inbound.port = 0), "--inbound-port=0: no program can listen on port 0"),
        (outbound(|outbound| outbound.port = 0), "--outbound-port=0: no program can listen on port 0"),
        (
            inbound(|inbound| inbound.ports = some("8080,15000-16000")),
            "--inbound-ports=15000-16000: 15006 is the port of the proxy itself: remove it",
        ),
        (
            outbound(|outbound| outbound.ports = some("15001")),
            "--outbound-ports=15001: 15001 is the port of the proxy itself: remove it",
        ),
        (
            inbound(|inbound| inbound.ports = Ports::Some(Vec::new())),
            "--inbound-ports=: the list has no port",
        ),
        (inbound(|inbound| inbound.ports = some("0")), "--inbound-ports=0: port 0 does not exist"),
        (
            inbound(|inbound| inbound.ports = some("90-80")),
            "--inbound-ports=90-80: the range is empty: write 80-90",
        ),
        (
            inbound(|inbound| inbound.except_ports = ranges("0-80")),
            "--inbound-except-ports=0-80: port 0 does not exist: begin with 1",
        ),
        (
            inbound(|inbound| {
                inbound.ports = some("80,85");
                inbound.except_ports = ranges("84-90,79-83");
            }),
            "--inbound-ports=80,85: every port of the list is also excepted",
        ),
        (
            outbound(|outbound| outbound.except_destinations = networks("0.0.0.0/0")),
            "--outbound-except-destinations=0.0.0.0/0: nothing is left to redirect",
        ),
        (
            exempt(|exempt| exempt.uids = vec![u32::MAX]),
            "--exempt-uids=4294967295: no process can have this id",
        ),
        (
            exempt(|exempt| exempt.gids = vec![u32::MAX]),
            "--exempt-gids=4294967295: no process can have this id",
        ),
        (marks(1, 0), "--exempt-marks=0x1/0x0: a mask of 0 matches every packet"),
        (marks(0, 1), "--exempt-marks=0x0/0x1: packets without a mark would match too"),
        (
            marks(3, 1),
            "--exempt-marks=0x3/0x1: the value has bits outside the mask, so nothing matches: write 0x3/0x3",
        ),
        (
            marks(0x0100_0001, u32::MAX),
            "are delivered to the pod itself and would not leave it: use another mark",
        ),
        (exempt(|exempt| exempt.net_cls = vec![0]), "--exempt-net-cls=0x0: every process without a class"),
        (cgroup(""), "--exempt-cgroups=: the root group has every process"),
        (cgroup("/a"), "--exempt-cgroups=/a: write the path relative to the root"),
        (cgroup("a/../b"), "--exempt-cgroups=a/../b: write the path relative to the root"),
        (cgroup("a,b"), "--exempt-cgroups=a,b: the path has a comma"),
        (cgroup(&["a"; 256].join("/")), "the group is nested too deeply"),
        (
            routing(1337, u32::MAX, 100),
            "--mark=0x539/0xffffffff: Istio uses this mark: use 0x1000000/0x1000000",
        ),
        (routing(1, 0, 100), "--mark=0x1/0x0: a mask of 0 matches every packet"),
        (routing(1, 1, 133), "--table=133: Istio uses this routing table: use 15006"),
        (routing(1, 1, 254), "--table=254: the kernel uses this routing table: use 15006"),
    ] {
        let found = settings.check().unwrap_err().to_string();
        assert!(found.contains(expected), "{found}\n{expected}");
    }
    assert_eq!(valid().check(), Ok(()));
}
