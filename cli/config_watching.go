package cli

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"

	"holdfast/engine/advice"
)

// validateWatching checks where metrics are served and webhooks go to. What
// is wrong with the URL is said without it: it may hold a secret.
func (c *config) validateWatching() error {
	if c.MetricsListen != "" {
		if _, _, err := net.SplitHostPort(c.MetricsListen); err != nil {
			return fmt.Errorf("metrics-listen: %q is not host:port", c.MetricsListen)
		}
	}
	if c.WebhookSecretFile == "" {
		c.WebhookSecretFile = filepath.Join(c.DataDir, "webhook.secret")
	}
	if c.WebhookURL == "" {
		return nil
	}
	target, err := url.Parse(c.WebhookURL)
	if err != nil || target.Host == "" || target.Scheme != "https" && target.Scheme != "http" {
		return errors.New("webhook-url: must be a URL that begins with https:// or http://")
	}
	return nil
}

// advice is when something is worth a recommendation; how old a backup may be
// follows from how often one is made.
func (c *config) advice() advice.Thresholds {
	thresholds := advice.Defaults()
	thresholds.BackupAge = max(thresholds.BackupAge, 2*c.BackupInterval)
	return thresholds
}
