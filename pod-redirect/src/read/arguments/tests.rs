use super::*;

fn parse(words: &[&str]) -> Result<Arguments, ReadArgumentError> {
    Arguments::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

#[test]
fn the_address_is_needed_and_the_directory_has_a_default() {
    let [v4, v6] = ["10.1.0.2", "fd01::2"].map(|text| text.parse::<IpAddr>().unwrap());
    let default = PathBuf::from(DEFAULT_DIRECTORY);
    assert_eq!(parse(&["--pod-ip=10.1.0.2"]), Ok(Arguments { pod_ip: v4, directory: default }));
    let other = Arguments { pod_ip: v6, directory: "/run/netns".into() };
    assert_eq!(parse(&["--namespaces=/run/netns", "--pod-ip=fd01::2"]), Ok(other));
    assert_eq!(parse(&[]), Err(ReadArgumentError::Missing));
    assert_eq!(parse(&["--pod-ip=web"]), Err(ReadArgumentError::NoAddress("web".to_owned())));
    assert_eq!(parse(&["--pod=1"]), Err(ReadArgumentError::Unknown("--pod=1".to_owned())));
}
