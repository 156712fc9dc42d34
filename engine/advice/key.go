package advice

import (
	"fmt"
	"time"

	"holdfast/engine/model"
)

// unusedKeys reports keys that have not been used for a long time.
func unusedKeys(f Facts) (found []model.Recommendation) {
	for _, k := range f.Keys {
		since := k.CreatedAt
		if k.LastUsedAt != nil {
			since = *k.LastUsedAt
		}
		if unused := f.Now.Sub(since); unused >= f.Limits.KeyUnused {
			found = append(found, aboutKey(k, "key_unused", "A key is not used",
				fmt.Sprintf("The key %s has not been used for %.0f days. Anyone who finds it can use it: revoke it in the console or with `holdfast admin key revoke %s`.", k.Name, unused.Hours()/24, k.ID),
				map[string]any{"unused_seconds": int64(unused / time.Second), "last_used_at": k.LastUsedAt}))
		}
	}
	return found
}

// keysWithoutExpiry reports keys that do not expire.
func keysWithoutExpiry(f Facts) (found []model.Recommendation) {
	for _, k := range f.Keys {
		if k.ExpiresAt == nil {
			found = append(found, aboutKey(k, "key_without_expiry", "A key does not expire",
				fmt.Sprintf("The key %s works until it is revoked. Make one with an expiry in its place, and end it with `holdfast admin key revoke %s`.", k.Name, k.ID),
				map[string]any{"created_at": k.CreatedAt, "allow_dangerous": k.AllowDangerous, "scopes": len(k.Scopes)}))
		}
	}
	return found
}

func aboutKey(k model.Key, code, title, message string, evidence map[string]any) model.Recommendation {
	return model.Recommendation{
		Code: code, Severity: model.SeverityInfo, Category: model.CategorySecurity, Title: title, Message: message,
		Resource: model.Resource{Type: model.ResourceKey, ID: k.ID, Name: k.Name}, Evidence: evidence,
		Action:  &model.RecommendedCall{Method: "GET", Path: "/v1/account/api-keys"},
		Caution: "What uses the key stops working when it is revoked.",
	}
}
