use super::*;

fn acknowledgement(error: Option<&str>) -> BesideAcknowledgement {
    BesideAcknowledgement {
        applied: false,
        is_active: false,
        number: 0,
        services: BTreeMap::new(),
        complaints: Vec::new(),
        error: error.map(str::to_owned),
    }
}

#[test]
fn an_agent_that_cannot_program_does_not_let_the_acknowledgement_before_stand() {
    assert!(acknowledgement(None).inherits());
    assert!(!acknowledgement(Some("the kernel refuses the table")).inherits());
}
