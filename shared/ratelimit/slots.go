package ratelimit

import "context"

// decideBySlot decides the charges of one hash slot after the other. If a charge is denied or a
// call fails, decideBySlot refunds the charges in the earlier slots. After a denial, it only peeks
// in the later slots.
func (l *Limiter) decideBySlot(ctx context.Context, op operation, charges []charge) ([]verdict, bool, error) {
	switch len(charges) {
	case 0:
		return nil, true, nil
	case 1:
		return l.redis.decide(ctx, op, charges)
	}

	groups, slots := l.groupBySlot(charges)
	verdicts := make([]verdict, len(charges))
	allowed := true
	var charged [][]int // for each charged slot, the indices of its charges
	for _, slot := range slots {
		members := groups[slot]
		found, fit, err := l.redis.decide(ctx, op, pick(charges, members))
		if err != nil {
			l.refund(ctx, charges, charged, verdicts)
			return nil, false, err
		}
		for i, member := range members {
			verdicts[member] = found[i]
		}

		switch {
		case !fit && allowed:
			allowed = false
			l.refund(ctx, charges, charged, verdicts)
			op = opPeek
		case fit && op == opCheck:
			charged = append(charged, members)
		}
	}

	return verdicts, allowed, nil
}

// groupBySlot groups the indices of the charges by hash slot. slots lists each slot once, in the
// order of its first charge.
func (l *Limiter) groupBySlot(charges []charge) (groups map[string][]int, slots []string) {
	groups = make(map[string][]int)
	for i, c := range charges {
		slot := l.redis.slot(c)
		if groups[slot] == nil {
			slots = append(slots, slot)
		}
		groups[slot] = append(groups[slot], i)
	}

	return groups, slots
}

func pick(charges []charge, indices []int) []charge {
	picked := make([]charge, len(indices))
	for i, index := range indices {
		picked[i] = charges[index]
	}

	return picked
}

// refund undoes the charges of earlier slots and updates their verdicts. It runs even if ctx has
// ended. Charges that it cannot refund expire with their window.
func (l *Limiter) refund(ctx context.Context, charges []charge, charged [][]int, verdicts []verdict) {
	ctx = context.WithoutCancel(ctx)
	for _, members := range charged {
		var fitting []int // in shadow mode, a charge that does not fit is allowed but not charged
		for _, member := range members {
			if verdicts[member].fits {
				fitting = append(fitting, member)
			}
		}
		if len(fitting) == 0 {
			continue
		}

		found, _, err := l.redis.decide(ctx, opRefund, pick(charges, fitting))
		if err != nil {
			continue
		}
		for i, member := range fitting {
			verdicts[member] = found[i]
		}
	}
}
