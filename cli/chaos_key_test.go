package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// chaosKey is what is known of an API key.
type chaosKey struct {
	id, name, secret string
	revoked          outcome // done: revoked; unknown: possibly; refused: not revoked
}

// keysAtMost is the maximum number of keys in a run.
const keysAtMost = 200

func (c *chaos) mayMakeKey() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.keys) < keysAtMost
}

func (c *chaos) keepKey(k *chaosKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = append(c.keys, k)
}

// operator runs an operator command, during which the appliance may die; ok
// reports success.
func (c *chaos) operator(ctx context.Context, args ...string) (out []byte, ok bool) {
	c.alive.RLock() // without an appliance it would lock the files that the next start needs
	defer c.alive.RUnlock()
	cmd := exec.CommandContext(ctx, program, append(args, "--data-dir", c.m.dataDir)...)
	out, err := cmd.Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is && c.excusedNow() {
		return exit.Stderr, false
	} else if is {
		c.t.Errorf("%v: %s", args, exit.Stderr)
	}
	return out, err == nil
}

func (c *chaos) excusedNow() bool { return c.excused(time.Now()) }

func (c *chaos) createKey(ctx context.Context, _ *rand.Rand, _ *client.Client) bool {
	if !c.mayMakeKey() {
		return false
	}
	name := c.name("key")
	out, ok := c.operator(ctx, "admin", "key", "create", "--preset", "read_only", "--name", name, "--json")
	if !ok {
		return true // if it was created, its secret is lost
	}
	var made struct {
		APIKey string `json:"api_key"`
		Key    struct{ ID string }
	}
	if err := json.Unmarshal(out, &made); err != nil || made.APIKey == "" {
		c.t.Errorf("admin key create: %v", err)
	}
	c.keepKey(&chaosKey{id: made.Key.ID, name: name, secret: made.APIKey, revoked: refused})
	return true
}

func (c *chaos) revokeKey(ctx context.Context, random *rand.Rand, _ *client.Client) bool {
	c.mu.Lock()
	var k *chaosKey
	if len(c.keys) > 0 {
		k = c.keys[random.IntN(len(c.keys))]
	}
	if k == nil || k.revoked != refused {
		c.mu.Unlock()
		return false
	}
	k.revoked = unknown
	c.mu.Unlock()
	if _, ok := c.operator(ctx, "admin", "key", "revoke", k.id, "--yes"); ok {
		c.mu.Lock()
		k.revoked = done
		c.mu.Unlock()
	}
	return true
}

// The user who approves devices.
const (
	chaosPerson   = "somebody@example.com"
	chaosPassword = "correct horse battery"
)

// signIn creates the user's account and session with the setup link.
func (c *chaos) signIn() {
	link, err := url.Parse(c.m.setup)
	if err != nil {
		c.t.Fatal(err)
	}
	jar, _ := cookiejar.New(nil) // never fails
	c.console = &http.Client{Jar: jar}
	answer, err := c.console.PostForm(link.Scheme+"://"+link.Host+"/setup", url.Values{
		"token": link.Query()["token"], "email": {chaosPerson}, "password": {chaosPassword},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Request.URL.Path != "/" {
		c.t.Fatalf("set up: %s at %s", answer.Status, answer.Request.URL)
	}
}

// deviceLogin gets a key as a tool does, with a user who approves or denies.
func (c *chaos) deviceLogin(ctx context.Context, random *rand.Rand, _ *client.Client) bool {
	if !c.mayMakeKey() {
		return false
	}
	tool, name := c.client(""), c.name("device")
	codes, err := tool.AuthorizeDevice(ctx, wire.AuthorizeDevice{ClientName: new(name), ScopePreset: new(wire.PresetReadOnly)})
	if c.outcome("authorize a device", err) != done {
		return true
	}
	verdict := [...]string{"approve", "approve", "deny"}[random.IntN(3)]
	if !c.decide(ctx, verdict, codes.UserCode) {
		return true
	}
	token, err := tool.GetDeviceToken(ctx, codes.DeviceCode)
	if verdict == "deny" {
		if code := client.CodeOf(err); err == nil || code != "" && code != wire.CodeAccessDenied {
			c.t.Errorf("a device that was denied: %v", err)
		}
		return true
	}
	if c.outcome("collect a key", err) != done {
		return true
	}
	c.keepKey(&chaosKey{id: token.Key.ID, name: name, secret: token.APIKey, revoked: refused})
	_, err = tool.GetDeviceToken(ctx, codes.DeviceCode)
	if code := client.CodeOf(err); err == nil || code != "" && code != wire.CodeExpiredToken && code != wire.CodeRateLimited {
		c.t.Errorf("a key that was collected, asked for again: %v", err)
	}
	return true
}

// decide sends the user's decision; it reports whether there was a response.
func (c *chaos) decide(ctx context.Context, verdict, code string) bool {
	form := url.Values{"user_code": {code}, "preset": {string(wire.PresetReadOnly)}, "expires": {"30d"}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		strings.TrimSuffix(c.m.api, "/v1")+"/device/"+verdict, strings.NewReader(form.Encode()))
	if err != nil {
		c.t.Error(err)
		return false
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := c.console.Do(request)
	if err != nil {
		return false
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK && (c.fill == nil || answer.StatusCode != http.StatusForbidden) {
		c.t.Errorf("%s a device: %s", verdict, answer.Status)
	}
	return answer.StatusCode == http.StatusOK
}

// checkKeys checks that each key has its privileges, and is listed.
func (c *chaos) checkKeys(ctx context.Context) {
	listed := map[string]wire.Key{}
	for k, err := range c.clients[0].Keys(ctx, client.KeyOptions{}) {
		if err != nil {
			c.t.Errorf("list keys: %v", err)
			return
		}
		listed[k.ID] = k
	}
	for _, k := range c.keys {
		_, err := c.client(k.secret).GetLimits(ctx)
		opens := err == nil
		if err != nil && client.CodeOf(err) != wire.CodeUnauthorized {
			c.t.Errorf("key %s: %v", k.name, err)
		}
		record, is := listed[k.id]
		if !is || record.Name != k.name || (record.RevokedAt == nil) != opens {
			c.t.Errorf("key %s opens: %t; listed: %t %+v", k.name, opens, is, record)
		}
		switch {
		case k.revoked == unknown && opens:
			k.revoked = refused
		case k.revoked == unknown:
			k.revoked = done
		case opens == (k.revoked == done):
			c.t.Errorf("key %s opens: %t, and should not be so", k.name, opens)
		}
	}
}
