package client

import (
	"context"
	"iter"

	"holdfast/server/api/wire"
)

// GetAgentStatus returns a summary of the account.
func (c *Client) GetAgentStatus(ctx context.Context) (wire.Status, error) {
	return one[wire.Status](ctx, c, "GET", "/agent/status", nil)
}

// RecommendationOptions select recommendations; an empty field selects all.
type RecommendationOptions struct {
	ListOptions
	Severity wire.RecommendationSeverity
	Category wire.RecommendationCategory
	Code     string
}

// ListRecommendations returns a page of the recommendations.
func (c *Client) ListRecommendations(ctx context.Context, o RecommendationOptions) (Page[wire.Recommendation], error) {
	query := setTexts(o.query(), map[string]string{"severity": string(o.Severity), "category": string(o.Category), "code": o.Code})
	return list[wire.Recommendation](ctx, c, "/agent/recommendations", query)
}

// Recommendations iterates over the recommendations that o selects.
func (c *Client) Recommendations(ctx context.Context, o RecommendationOptions) iter.Seq2[wire.Recommendation, error] {
	return all(ctx, o, func(o *RecommendationOptions) *ListOptions { return &o.ListOptions }, c.ListRecommendations)
}
