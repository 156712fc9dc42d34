// Package metrics is the appliance's figures for Prometheus, in a registry of
// its own. No id is a label: what there can be any number of is summed up, or
// the worst of it is shown. A dashboard and alert rules in deploy are for
// Grafana and Prometheus; a test holds them to the metrics there are.
package metrics
