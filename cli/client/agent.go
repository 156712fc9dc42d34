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

// ListRecommendations returns a page of the recommendations.
func (c *Client) ListRecommendations(ctx context.Context, o ListOptions) (Page[wire.Recommendation], error) {
	return list[wire.Recommendation](ctx, c, "/agent/recommendations", o.query())
}

// Recommendations iterates over all recommendations.
func (c *Client) Recommendations(ctx context.Context) iter.Seq2[wire.Recommendation, error] {
	return All(ctx, c.ListRecommendations)
}
