//go:build tools

// Package tools names the programs that the lab builds, so that go.sum covers them.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
