"use strict";
// Communities of tokens by a head's similarities, as effects/potts defines them: states of least
// energy E = −Σ (C_ij − γ null_ij) δ(s_i, s_j), the null of positive and negative couplings apart.
// Looked for by moving rows, then whole communities, for as long as that lowers the energy.

const LEAST_GAIN = 1e-9; // of the largest coupling: less is rounding

/**
 * The community of each row, the largest being 0, and the energy in units of all couplings. Rows of
 * different windows are never in one.
 *
 * @param {Float32Array} C
 * @param {number} count
 * @param {ArrayLike<number>} windows of the rows
 * @param {number} gamma
 */
function communitiesOf(C, count, windows, gamma) {
  const states = new Int32Array(count);
  let [energy, strength, known] = [0, 0, 0];
  for (const window of new Set(Array.from(windows))) {
    const rows = Array.from({ length: count }, (_, i) => i).filter((i) => windows[i] === window);
    const { J, whole } = couplings(C, count, rows, gamma);
    const starts = [rows.map((_, at) => at), rows.map(() => 0)]; // all alone, and all together
    const found = starts.map((start) => settled(J, start));
    const best = energyOf(J, found[1]) < energyOf(J, found[0]) ? found[1] : found[0];
    rows.forEach((row, at) => (states[row] = known + best[at]));
    energy += energyOf(J, best);
    strength += whole;
    known += rows.length;
  }
  return { states: bySize(states), energy: strength ? energy / strength : 0 };
}

/**
 * The couplings J of some rows (rows × rows), and Σ |C| over their pairs.
 *
 * @param {Float32Array} C
 * @param {number} count
 * @param {number[]} rows
 * @param {number} gamma
 */
function couplings(C, count, rows, gamma) {
  const size = rows.length;
  const J = new Float64Array(size * size);
  const signs = [new Float64Array(size), new Float64Array(size)]; // sums of rows: positive, negative
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      if (i === j) continue;
      const value = C[rows[i] * count + rows[j]];
      J[i * size + j] = value;
      signs[value < 0 ? 1 : 0][i] += Math.abs(value);
    }
  }
  const wholes = signs.map((sums) => sums.reduce((sum, one) => sum + one, 0));
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      if (i === j) continue;
      const [more, less] = signs.map((sums, s) => (wholes[s] ? (sums[i] * sums[j]) / wholes[s] : 0));
      J[i * size + j] -= gamma * (more - less);
    }
  }
  return { J, whole: (wholes[0] + wholes[1]) / 2 };
}

/**
 * States from which neither a row nor a whole community can be moved to lower the energy.
 *
 * @param {Float64Array} J
 * @param {number[]} states
 */
function settled(J, states) {
  const least = LEAST_GAIN * J.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  for (;;) {
    states = withoutGaps(moved(J, states, least));
    const number = Math.max(-1, ...states) + 1;
    const apart = Array.from({ length: number }, (_, a) => a);
    const groups = moved(between(J, states, number), apart, least);
    if (groups.every((to, a) => to === a)) return states;
    states = states.map((state) => groups[state]);
  }
}

/**
 * The coupling of every two communities: (communities × communities).
 *
 * @param {Float64Array} J
 * @param {number[]} states
 * @param {number} number of communities
 */
function between(J, states, number) {
  const size = states.length;
  const found = new Float64Array(number * number);
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      if (states[i] !== states[j]) found[states[i] * number + states[j]] += J[i * size + j];
    }
  }
  return found;
}

/**
 * @param {Float64Array} J
 * @param {number[]} states
 */
function energyOf(J, states) {
  let sum = 0;
  for (let i = 0; i < states.length; i++) {
    for (let j = 0; j < i; j++) if (states[i] === states[j]) sum -= J[i * states.length + j];
  }
  return sum;
}

/**
 * Move one after another to the state it is most drawn to, or to one of its own, until none moves.
 *
 * @param {Float64Array} J (count × count), nothing on the diagonal
 * @param {number[]} from
 * @param {number} least
 */
function moved(J, from, least) {
  const count = from.length;
  const states = [...from];
  const members = new Int32Array(count);
  for (const state of states) members[state]++;
  for (let moves = 1; moves > 0;) {
    moves = 0;
    for (let i = 0; i < count; i++) {
      const pull = new Float64Array(count);
      for (let j = 0; j < count; j++) pull[states[j]] += J[i * count + j];
      const alone = members.findIndex((number, state) => number === 0 && state !== states[i]);
      let best = states[i];
      members.forEach((number, state) => {
        if (number > 0 && pull[state] > pull[best] + least) best = state;
      });
      if (pull[best] < -least && alone >= 0 && members[states[i]] > 1) best = alone;
      if (best === states[i]) continue;
      members[states[i]]--;
      members[best]++;
      states[i] = best;
      moves++;
    }
  }
  return states;
}

/** @param {number[]} states */
function withoutGaps(states) {
  const known = [...new Set(states)];
  const number = new Map(known.map((state, at) => [state, at]));
  return states.map((state) => number.get(state) ?? 0);
}

/**
 * States numbered by their size; of equal ones the first comes first.
 *
 * @param {Int32Array} states
 */
function bySize(states) {
  /** @type {Map<number, number>} */
  const sizes = new Map();
  for (const state of states) sizes.set(state, (sizes.get(state) ?? 0) + 1);
  const order = [...sizes.keys()].toSorted((a, b) => (sizes.get(b) ?? 0) - (sizes.get(a) ?? 0));
  const rank = new Map(order.map((state, at) => [state, at]));
  return states.map((state) => rank.get(state) ?? 0);
}
