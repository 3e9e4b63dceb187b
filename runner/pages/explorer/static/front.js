// @ts-check
// Which of the rows shown are best for their cost, by the rule of `find_front` in runner/statistics/selection.py.

/**
 * Return the rows on the front of the lowest cost and the highest mean, in ascending order of the cost.
 * @param {number[]} rows
 * @param {(number | null)[]} costs by row; one without a cost or a mean is not on the front
 * @param {(number | null)[]} means by row
 * @param {number} ignored a mean that is larger by at most this much counts as equal to that of a cheaper row
 */
function findFront(rows, costs, means, ignored) {
  const cost = (/** @type {number} */ row) => Number(costs[row]), mean = (/** @type {number} */ row) => Number(means[row]);
  const known = rows.filter(row => typeof costs[row] === "number" && typeof means[row] === "number");
  /** @type {number[]} */
  const front = [];
  for (const row of known.sort((a, b) => cost(a) - cost(b) || mean(b) - mean(a))) {
    const last = front[front.length - 1];  // it has the largest mean on the front
    if (last === undefined || mean(row) > mean(last) + ignored
      || (cost(row) === cost(last) && mean(row) === mean(last))) front.push(row);
  }
  return front;
}
