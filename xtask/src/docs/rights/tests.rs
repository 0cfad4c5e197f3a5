use serde::Deserialize;

use super::*;

const MANIFESTS: &str = "
kind: ClusterRole
metadata: {name: cook}
rules:
- {apiGroups: [''], resources: [nodes, services], verbs: [list, watch]}
- {apiGroups: [apps], resources: [daemonsets], resourceNames: [one], verbs: [patch]}
---
kind: Role
metadata: {name: cook, namespace: kitchen}
rules:
- {apiGroups: [''], resources: [secrets], resourceNames: [recipe], verbs: [get]}
---
kind: ClusterRoleBinding
metadata: {name: a}
roleRef: {kind: ClusterRole, name: cook}
subjects: [{kind: ServiceAccount, name: cook, namespace: kitchen}]
---
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {kind: ClusterRole, name: 'system:eater'}
subjects: [{kind: ServiceAccount, name: cook, namespace: kitchen}]
---
kind: RoleBinding
metadata: {name: a, namespace: kitchen}
roleRef: {kind: Role, name: cook}
subjects: [{kind: ServiceAccount, name: cook, namespace: kitchen}]
";

const PAGE: &str = "
| where | verbs | what |
|---|---|---|
| cluster | delete | `everything` |

<!-- rights: kitchen/cook -->

| where | verbs | what | why |
|---|---|---|---|
| cluster | list, watch | `nodes`, `services` | to see |
| cluster | patch | `daemonsets.apps` named `one` | |
| cluster | bound to | `system:eater` | |
| `kitchen` | get | `secrets` named `recipe` | |

| where | verbs | what |
|---|---|---|
| cluster | delete | `everything` |
";

fn manifests() -> BTreeSet<Grant> {
    let documents = serde_yaml::Deserializer::from_str(MANIFESTS);
    let documents: Vec<Value> = documents.map(|document| Value::deserialize(document).unwrap()).collect();
    granted(&documents)
}

#[test]
fn a_page_that_says_what_is_granted_is_right_and_other_tables_do_not_count() {
    assert_eq!(manifests().len(), 7);
    assert_eq!(compare(PAGE, &manifests()), []);
}

#[test]
fn what_is_not_granted_and_what_is_not_told_are_named() {
    let page = PAGE.replace("| get | `secrets` named `recipe`", "| get | `secrets`");
    assert_eq!(
        compare(&page, &manifests()),
        [
            (13, "no manifest grants this: kitchen/cook: in kitchen, get secrets".to_owned()),
            (
                1,
                "no table of permissions lists this: kitchen/cook: in kitchen, get secrets named recipe"
                    .to_owned()
            ),
        ]
    );
    let page = PAGE.replace("list, watch", "list, watch, list");
    assert!(compare(&page, &manifests())[0].1.starts_with("this permission is listed twice: "));
    let page = PAGE.replace("`daemonsets.apps` named `one`", "daemonsets");
    assert_eq!(
        compare(&page, &manifests())[0],
        (11, "a permission needs verbs, and resources between backticks".to_owned())
    );
    assert_eq!(compare("", &manifests()).len(), 7);
}
