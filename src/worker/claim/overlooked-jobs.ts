import { inClaimOrder, type JobPlace } from '../../queries/find-overlooked.ts';

/** Beyond this many the next ones are left where they are: a sweep finds them again. */
const MAX_KEPT = 25_000;

/** The jobs of one queue that are known to lie behind its floors (swept, or given back), to claim by id. */
export class OverlookedJobs {
  readonly #places = new Map<number, JobPlace>();
  #sorted = true;

  get size(): number {
    return this.#places.size;
  }

  /** Keeps them; returns whether there was room for all. */
  add(places: readonly JobPlace[]): boolean {
    for (const place of places) {
      if (this.#places.size >= MAX_KEPT) return false;
      if (this.#places.has(place.id)) continue;
      this.#places.set(place.id, place);
      this.#sorted = false;
    }
    return true;
  }

  /** Whether one is to be claimed now. */
  has(maxPriority: number): boolean {
    const [first] = this.#inOrder();
    return first !== undefined && first.priority <= maxPriority;
  }

  /** Takes out the next `limit` in claim order, up to a priority. */
  take(limit: number, maxPriority: number): JobPlace[] {
    const taken: JobPlace[] = [];
    for (const place of this.#inOrder()) {
      if (taken.length >= limit || place.priority > maxPriority) break;
      taken.push(place);
    }
    for (const { id } of taken) this.#places.delete(id);
    return taken;
  }

  #inOrder(): IterableIterator<JobPlace> {
    if (!this.#sorted) {
      const places = [...this.#places.values()].sort(inClaimOrder);
      this.#places.clear();
      for (const place of places) this.#places.set(place.id, place);
      this.#sorted = true;
    }
    return this.#places.values();
  }
}
