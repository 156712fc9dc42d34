package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// maxBudget is the largest budget: the time of every request in a window is
// kept in memory for each key.
const maxBudget = 10_000

// defaultBudgets returns the default of the setting, in its own syntax.
func defaultBudgets() (texts []string) {
	rates := core.DefaultRates()
	for _, class := range model.RateClasses() {
		window := strings.Replace(rates[class].Window.String(), "m0s", "m", 1)
		texts = append(texts, fmt.Sprintf("%s=%d/%s", class, rates[class].Limit, window))
	}
	return texts
}

// readBudgets parses the setting; a class that it omits has its default.
func readBudgets(texts []string) (map[model.RateClass]core.Rate, error) {
	rates := core.DefaultRates()
	for _, text := range texts {
		name, budget, _ := strings.Cut(text, "=")
		if !slices.Contains(model.RateClasses(), model.RateClass(name)) {
			return nil, fmt.Errorf("budgets: %q is none of %v, such as in create_database=30/1m", name, model.RateClasses())
		}
		limitText, windowText, _ := strings.Cut(budget, "/")
		limit, err := strconv.Atoi(limitText)
		window, err2 := time.ParseDuration(windowText)
		if err != nil || err2 != nil || limit < 1 || limit > maxBudget || window < time.Second || window > 24*time.Hour {
			return nil, fmt.Errorf("budgets: %s: %q is not like 30/1m, from 1 to %d requests in 1s to 24h", name, budget, maxBudget)
		}
		rates[model.RateClass(name)] = core.Rate{Limit: limit, Window: window}
	}
	return rates, nil
}
