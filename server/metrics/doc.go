// Package metrics has the appliance's figures for Prometheus, in a registry of its own. No id is a label: the
// metrics of unbounded sets show the sum or the worst value. The directory deploy has a dashboard and alert rules
// for Grafana and Prometheus; a test checks that they use existing metrics.
package metrics
