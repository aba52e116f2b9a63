import { type ClaimPlace, inClaimOrder } from '../../queries/claim/find-overlooked.ts';

/** Beyond this many the next ones are left where they are: a sweep finds them again. */
const MAX_KEPT = 25_000;

/** The jobs of one queue that are known to lie behind its floors (swept, or given back), to claim by id. */
export class OverlookedJobs {
  readonly #priorityOf: (place: ClaimPlace) => number;
  readonly #places = new Map<number, ClaimPlace>();
  /** The jobs of each priority in claim order, the next one last: however they age, that order stays. */
  #byPriority: ClaimPlace[][] | undefined;

  /** @param priorityOf as which priority a job counts at this moment */
  constructor(priorityOf: (place: ClaimPlace) => number = ({ priority }) => priority) {
    this.#priorityOf = priorityOf;
  }

  get size(): number {
    return this.#places.size;
  }

  /** Keeps them; returns whether there was room for all. */
  add(places: readonly ClaimPlace[]): boolean {
    for (const place of places) {
      if (this.#places.size >= MAX_KEPT) return false;
      if (this.#places.has(place.id)) continue;
      this.#places.set(place.id, place);
      this.#byPriority = undefined;
    }
    return true;
  }

  /** Whether one is to be claimed, up to a priority. */
  has(maxPriority: number): boolean {
    return this.#places.size > 0 && this.#next(maxPriority) !== undefined;
  }

  /** Takes out the next `limit` in claim order, up to a priority. */
  take(limit: number, maxPriority: number): ClaimPlace[] {
    const taken: ClaimPlace[] = [];
    while (taken.length < limit) {
      const place = this.#next(maxPriority)?.pop();
      if (place === undefined) break;
      taken.push(place);
      this.#places.delete(place.id);
    }
    return taken;
  }

  /** The priority whose turn it is. Jobs that count as the same one are in the order of their times. */
  #next(maxPriority: number): ClaimPlace[] | undefined {
    this.#byPriority ??= inClaimOrderByPriority(this.#places.values());
    let next: ClaimPlace[] | undefined;
    let nextPlace: ClaimPlace | undefined;
    for (const places of this.#byPriority) {
      const place = places.at(-1);
      if (place === undefined) continue;
      const counted = { ...place, priority: this.#priorityOf(place) };
      if (counted.priority > maxPriority) continue;
      if (nextPlace !== undefined && inClaimOrder(nextPlace, counted) <= 0) continue;
      next = places;
      nextPlace = counted;
    }
    return next;
  }
}

function inClaimOrderByPriority(all: Iterable<ClaimPlace>): ClaimPlace[][] {
  const byPriority = new Map<number, ClaimPlace[]>();
  for (const place of all) {
    const places = byPriority.get(place.priority) ?? [];
    byPriority.set(place.priority, places);
    places.push(place);
  }
  for (const places of byPriority.values()) places.sort((a, b) => inClaimOrder(b, a));
  return [...byPriority.values()];
}
