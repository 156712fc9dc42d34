package cli

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// validateWebsite checks the URL of websites. Every name below its host is a website, so nothing else may be there.
func (c *config) validateWebsite() error {
	if c.S3WebsiteURL == "" {
		return nil
	}
	if err := validateBaseURL("s3-website-url", c.S3WebsiteURL); err != nil {
		return err
	}
	own, err := url.Parse(c.S3WebsiteURL)
	if err != nil {
		return fmt.Errorf("s3-website-url: %w", err)
	}
	host := strings.ToLower(own.Hostname())
	switch {
	case c.S3Listen == "" && c.S3URL == "":
		return errors.New("s3-website-url: websites are served by the S3 endpoint, so it needs --s3-listen or --s3-url")
	case net.ParseIP(host) != nil:
		return errors.New("s3-website-url: must have a host name, because each website is a name below it")
	}
	for flag, text := range map[string]string{"--s3-url": c.S3URL, "--public-url": c.PublicURL, "--objects-url": c.ObjectsURL} {
		other, err := url.Parse(text)
		if err != nil {
			return fmt.Errorf("%s: %w", strings.TrimPrefix(flag, "--"), err)
		}
		name := strings.ToLower(other.Hostname())
		if strings.HasSuffix(name, "."+host) || flag == "--s3-url" && (name == host || strings.HasSuffix(host, "."+name)) {
			return fmt.Errorf("s3-website-url: names below %s would be websites and part of %s too: use another host name", host, flag)
		}
	}
	return nil
}

func (c *config) validateS3() error {
	if err := c.validateWebsite(); err != nil {
		return err
	}
	if err := validateBaseURL("s3-url", c.S3URL); err != nil {
		return err
	}
	if c.S3Listen != "" {
		return c.validateAddress("s3-listen", c.S3Listen)
	}
	if c.S3URL == "" {
		return nil
	}
	own, err := url.Parse(c.S3URL)
	if err != nil {
		return fmt.Errorf("s3-url: %w", err)
	}
	main, err := url.Parse(c.PublicURL)
	if err != nil {
		return fmt.Errorf("public-url: %w", err)
	}
	host, console := strings.ToLower(own.Hostname()), strings.ToLower(main.Hostname())
	switch {
	case net.ParseIP(host) != nil || host == "localhost" || host == console:
		return errors.New("s3-url: without --s3-listen, the S3 endpoint needs a host name that is not that of --public-url")
	case strings.HasSuffix(console, "."+host):
		return fmt.Errorf("s3-url: names below %s are buckets, and --public-url is one: use another host name, or --s3-listen", host)
	}
	return nil
}
