package recovery

import (
	"slices"
	"testing"

	"holdfast/engine/model"
)

// TestGenerationsOf: a generation that served twice, because a restore was undone, counts where it served last.
func TestGenerationsOf(t *testing.T) {
	t.Parallel()
	db := model.Database{Generation: 7, Served: []model.Served{{Generation: 1}, {Generation: 4}, {Generation: 1}, {Generation: 5}, {Generation: 7}}}
	if got := generationsOf(db); !slices.Equal(got, []int{7, 5, 1, 4}) {
		t.Errorf("%v", got)
	}
	db.Served = db.Served[3:] // the first generation served before the first switch
	if got := generationsOf(db); !slices.Equal(got, []int{7, 5, 1}) {
		t.Errorf("%v", got)
	}
}
