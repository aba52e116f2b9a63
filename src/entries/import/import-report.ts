import type { ForeignState } from './foreign-job.ts';

/** A job that stays where it is. */
export interface LeftJob {
  /** Its id there. */
  readonly id: string;
  readonly name: string;
  /**
   * - `invalid`: its payload, or what the mapping made of it, was refused; or it is due after its deadline.
   * - `duplicate`: a live job here has its unique key.
   * - `unfit`: it hangs on something that cannot be carried over, such as a flow, or a serial queue.
   * - `locked`: another transaction had locked its row, of a worker that was taking it or of the app.
   */
  readonly why: 'invalid' | 'duplicate' | 'unfit' | 'locked';
  readonly message: string;
}

/** The jobs of one name. */
export interface ImportedName {
  /** Their name there. */
  readonly name: string;
  /** Their kind here; `undefined`: the mapping does not name them, and all of them are left. */
  readonly kind: string | undefined;
  /** How many were imported (in a dry run: would be) that were due and had never run. */
  readonly waiting: number;
  /** How many were not due yet and had never run. */
  readonly delayed: number;
  /** How many had failed and had attempts left. */
  readonly retrying: number;
  /** How many stay where they are. */
  readonly left: number;
}

/** What {@link importJobs} returns. */
export interface ImportReport {
  /** `true`: nothing was changed, and all numbers say what would have been. */
  readonly dryRun: boolean;
  readonly imported: number;
  /**
   * How many of the imported jobs had more than 10,000 attempts there. 10,000 is the most that a job can have
   * here, and what they have now.
   */
  readonly bounded: number;
  /** How many of the jobs that wait stay where they are, those of names without a rule included. */
  readonly left: number;
  /** How many its workers had when it began. They are left to them, and come into no other number. */
  readonly active: number;
  /** By name, in the order of the names. */
  readonly names: readonly ImportedName[];
  /** The first 1,000 of those with a rule that are left, each with the reason. */
  readonly leftJobs: readonly LeftJob[];
}

const MAX_LEFT_JOBS = 1_000;

type Counts = { -readonly [K in keyof ImportedName]: ImportedName[K] };

/** What is counted of an imported job. */
export interface CountedJob {
  readonly read: { readonly name: string; readonly state: ForeignState };
  readonly bounded: boolean;
}

/** Counts what becomes of jobs. */
export class Tally {
  imported = 0;
  bounded = 0;
  left = 0;
  readonly #names = new Map<string, Counts>();
  readonly #leftJobs: LeftJob[] = [];

  /** @param kinds the kind that each name with a rule becomes */
  constructor(readonly kinds: ReadonlyMap<string, string>) {
    for (const name of kinds.keys()) this.#of(name);
  }

  addImported({ read: { name, state }, bounded }: CountedJob): void {
    this.imported++;
    if (bounded) this.bounded++;
    this.#of(name)[state]++;
  }

  addLeft(job: LeftJob): void {
    this.addUnnamed(job.name, 1);
    if (this.#leftJobs.length < MAX_LEFT_JOBS) this.#leftJobs.push(job);
  }

  /** Of a name that the mapping does not have. */
  addUnnamed(name: string, count: number): void {
    this.left += count;
    this.#of(name).left += count;
  }

  report(dryRun: boolean, active: number): ImportReport {
    const names = [...this.#names.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    const { imported, bounded, left } = this;
    return { dryRun, imported, bounded, left, active, names, leftJobs: [...this.#leftJobs] };
  }

  #of(name: string): Counts {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    const counts = { name, kind: this.kinds.get(name), waiting: 0, delayed: 0, retrying: 0, left: 0 };
    this.#names.set(name, counts);
    return counts;
  }
}
