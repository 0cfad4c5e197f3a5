//! Compares the permissions of the project's programs with their use: the roles bound to each
//! ServiceAccount against the API server's audit log.

use std::collections::BTreeSet;
use std::fmt;

use isp_lab::{Lab, Request};
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::Api;
use kube::api::ListParams;

/// A single permission of an account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Grant {
    user: String,
    verb: String,
    group: String,
    resource: String,
    /// All namespaces if None.
    namespace: Option<String>,
    /// All names if None.
    name: Option<String>,
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, verb, group, resource, namespace, name } = self;
        let (namespace, name) = (namespace.as_deref().unwrap_or("*"), name.as_deref().unwrap_or("*"));
        write!(f, "{user}: {verb} {resource}.{group} {namespace}/{name}")
    }
}

impl Grant {
    /// Whether the permission was needed to grant something, for which no request of its own
    /// appears in the audit log: the operator binds the agents' roles, and can put only its own
    /// permissions into their role.
    fn is_given_by(&self, given: &Given) -> bool {
        let Self { verb, group, resource, name, .. } = self;
        match name {
            Some(name) if verb == "bind" => given.roles.contains(name),
            _ => given.rights.contains(&(verb.clone(), group.clone(), resource.clone())),
        }
    }

    /// Whether a request needed it.
    fn is_used_by(&self, request: &Request) -> bool {
        // A server-side apply that creates the object has the verb patch but needs both
        // permissions.
        let created = request.verb == "patch" && request.code == 201;
        request.code < 400
            && request.user == self.user
            && (request.verb == self.verb || created && self.verb == "create")
            && request.group == self.group
            && request.resource == self.resource
            && self.namespace.as_ref().is_none_or(|namespace| request.namespace.as_ref() == Some(namespace))
            && self.name.as_ref().is_none_or(|name| request.name.as_ref() == Some(name))
    }
}

/// What the first account grants to the others.
#[derive(Default)]
struct Given {
    /// The roles that it binds.
    roles: BTreeSet<String>,
    /// The verbs, groups and resources of the agents' own role.
    rights: BTreeSet<(String, String, String)>,
}

/// The permissions of some accounts at one point in time.
pub struct Rights {
    accounts: Vec<String>,
    grants: BTreeSet<Grant>,
    given: Given,
}

impl Rights {
    /// The current permissions. The first account may grant permissions to the others: the operator
    /// does so for the agents, whose permissions are removed with the last agent.
    pub async fn take(lab: &Lab, accounts: &[String]) -> Self {
        let grants = grants(lab, accounts).await;
        let bindings: Api<ClusterRoleBinding> = Api::all(lab.client());
        let bindings = bindings.list(&ListParams::default()).await.unwrap();
        let receivers = &accounts[1..];
        let of_receivers = bindings
            .into_iter()
            .filter(|binding| users(binding.subjects.clone(), receivers).next().is_some());
        let of_roles = grants.iter().filter(|grant| receivers.contains(&grant.user));
        let rights = of_roles.map(|grant| (grant.verb.clone(), grant.group.clone(), grant.resource.clone()));
        let given = Given {
            roles: of_receivers.map(|binding| binding.role_ref.name).collect(),
            rights: rights.collect(),
        };
        Self { accounts: accounts.to_vec(), grants, given }
    }

    /// Asserts that every permission was used and no request was denied.
    pub fn expect_enough_and_not_more(&self, lab: &Lab) {
        let Self { accounts, grants, given } = self;
        let requests = lab.audit().unwrap();
        let denied =
            requests.iter().filter(|request| request.code == 403 && accounts.contains(&request.user));
        let denied: BTreeSet<_> = denied.collect();
        assert!(denied.is_empty(), "denied: {denied:#?}");
        let is_given = |grant: &Grant| grant.user == accounts[0] && grant.is_given_by(given);
        let used =
            |grant: &&Grant| requests.iter().any(|request| grant.is_used_by(request)) || is_given(grant);
        let (used, unused): (Vec<_>, Vec<_>) = grants.iter().partition(used);
        println!("rights: {} granted, {} used, in {} requests", grants.len(), used.len(), requests.len());
        assert!(unused.is_empty(), "granted, but not used:\n{}", lines(&unused));
        for account in accounts {
            assert!(used.iter().any(|grant| grant.user == *account), "nothing is granted to {account}");
        }
    }
}

/// The username of a ServiceAccount.
pub fn user(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

fn lines(grants: &[&Grant]) -> String {
    grants.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The permissions of the accounts, without upstream's own role for kube-proxy.
async fn grants(lab: &Lab, accounts: &[String]) -> BTreeSet<Grant> {
    let all = ListParams::default();
    let mut grants = BTreeSet::new();
    let bindings: Api<ClusterRoleBinding> = Api::all(lab.client());
    for binding in bindings.list(&all).await.unwrap() {
        for user in users(binding.subjects, accounts) {
            add(lab, &binding.role_ref, &user, None, &mut grants).await;
        }
    }
    let bindings: Api<RoleBinding> = Api::all(lab.client());
    for binding in bindings.list(&all).await.unwrap() {
        for user in users(binding.subjects, accounts) {
            add(lab, &binding.role_ref, &user, binding.metadata.namespace.as_deref(), &mut grants).await;
        }
    }
    grants
}

/// The accounts among the subjects.
fn users(subjects: Option<Vec<Subject>>, accounts: &[String]) -> impl Iterator<Item = String> {
    let subjects = subjects.unwrap_or_default().into_iter();
    let users = subjects.filter(|subject| subject.kind == "ServiceAccount");
    users
        .map(|subject| user(subject.namespace.as_deref().unwrap_or_default(), &subject.name))
        .filter(|user| accounts.contains(user))
}

async fn add(lab: &Lab, role: &RoleRef, user: &str, namespace: Option<&str>, grants: &mut BTreeSet<Grant>) {
    if role.name == "system:node-proxier" {
        return;
    }
    let rules = if role.kind == "Role" {
        let roles: Api<Role> = Api::namespaced(lab.client(), namespace.unwrap());
        roles.get(&role.name).await.unwrap().rules
    } else {
        let roles: Api<ClusterRole> = Api::all(lab.client());
        roles.get(&role.name).await.unwrap().rules
    };
    for rule in rules.unwrap() {
        grants.extend(expand(&rule, user, namespace));
    }
}

/// Expands a rule into single permissions.
fn expand(rule: &PolicyRule, user: &str, namespace: Option<&str>) -> Vec<Grant> {
    assert!(rule.non_resource_urls.is_none(), "{rule:?}");
    let list = |values: &Option<Vec<String>>| values.clone().unwrap_or_default();
    let mut names: Vec<_> = list(&rule.resource_names).into_iter().map(Some).collect();
    if names.is_empty() {
        names.push(None);
    }
    let mut grants = Vec::new();
    for group in list(&rule.api_groups) {
        for resource in list(&rule.resources) {
            for verb in &rule.verbs {
                assert!(![&group, &resource, verb].iter().any(|word| *word == "*"), "too wide: {rule:?}");
                for name in &names {
                    grants.push(Grant {
                        user: user.to_owned(),
                        verb: verb.clone(),
                        group: group.clone(),
                        resource: resource.clone(),
                        namespace: namespace.map(str::to_owned),
                        name: name.clone(),
                    });
                }
            }
        }
    }
    grants
}
