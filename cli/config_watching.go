package cli

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"

	"holdfast/engine/advice"
	"holdfast/engine/core"
)

// validateWatching checks the metrics address and the webhook URL. The error
// does not include the URL, which may hold a secret.
func (c *config) validateWatching() error {
	if c.MetricsListen != "" {
		if _, _, err := net.SplitHostPort(c.MetricsListen); err != nil {
			return fmt.Errorf("metrics-listen: %q is not host:port", c.MetricsListen)
		}
	}
	if c.Webhooks.SecretFile == "" {
		c.Webhooks.SecretFile = filepath.Join(c.DataDir, core.WebhookSecretFile)
	}
	if c.Webhooks.OperatorURL == "" {
		return nil
	}
	target, err := url.Parse(c.Webhooks.OperatorURL)
	if err != nil || target.Host == "" || target.Scheme != "https" && target.Scheme != "http" {
		return errors.New("webhook-url: must be a URL that begins with https:// or http://")
	}
	return nil
}

// advice returns the thresholds for recommendations; the maximum age of a
// backup depends on the backup interval.
func (c *config) advice() advice.Thresholds {
	thresholds := advice.Defaults()
	thresholds.BackupAge = max(thresholds.BackupAge, 2*c.BackupInterval)
	return thresholds
}
