import type { Executor, JobDefinition } from '../../index.ts';
import { shown } from '../../internal.ts';
import { type FoundStep, findStepsOfOne, type TablesOfWorkflows } from '../../testing-face.ts';
import { type Difference, differences, type Equals } from './differences.ts';
import type { ExpectedJob } from './expected-job.ts';

/** What `toHaveRecordedSteps` expects, beside the job itself. */
export interface ExpectedSteps<TJob extends JobDefinition = JobDefinition> extends ExpectedJob<TJob> {
  /**
   * Steps that are over: their outputs by their names, compared as `toEqual` does; `undefined` for one
   * without an output, and for a signal that did not come in time. Or only their names. Others may be
   * recorded, too.
   */
  steps?: Readonly<Record<string, unknown>> | readonly string[] | undefined;
  /** The names of the steps that the job waits in: all of them, in any order. @default not compared */
  waitsFor?: readonly string[] | undefined;
}

/** For callers without TypeScript. @throws TypeError naming what is wrong */
export function checkExpectedSteps(matcher: string, { steps, waitsFor }: ExpectedSteps): void {
  if (steps === undefined && waitsFor === undefined) return;
  if (matcher !== 'toHaveRecordedSteps') {
    throw new TypeError(`${matcher}: steps and waitsFor belong to toHaveRecordedSteps`);
  }
  if (steps !== undefined && (typeof steps !== 'object' || steps === null)) {
    throw new TypeError(`${matcher}: steps must be an object or an array of names, got ${shown(steps)}`);
  }
  if (waitsFor !== undefined && !Array.isArray(waitsFor)) {
    throw new TypeError(`${matcher}: waitsFor must be an array of names, got ${shown(waitsFor)}`);
  }
}

/** In what the recorded steps of a job are not as expected; a job without any has a difference, too. */
export async function stepDifferences(
  db: Executor,
  tables: TablesOfWorkflows,
  id: number,
  { steps = [], waitsFor }: ExpectedSteps,
  equals: Equals,
): Promise<readonly Difference[]> {
  const found = await findStepsOfOne(db, tables, { id, queue: undefined });
  const known = new Map(found.map((step) => [step.name, step]));
  const isNamed = Array.isArray(steps);
  const names: readonly string[] = isNamed ? steps : Object.keys(steps);
  const wanted = names.flatMap((name) => {
    const expected: unknown = isNamed ? new Words('to be over') : Reflect.get(steps, name);
    const step = known.get(name);
    const path = `steps.${name}`;
    const lack = whyNotOver(step);
    if (lack !== undefined) return [{ path, actual: new Words(lack), expected }];
    return isNamed ? [] : differences(path, step?.output, expected, equals);
  });
  const open = found.filter((step) => step.error === null && !isOver(step)).map(({ name }) => name);
  const waits = waitsFor === undefined ? [] : differences('waitsFor', open, waitsFor, sameNames);
  const none =
    found.length === 0 && names.length === 0 && waitsFor === undefined
      ? [{ path: 'steps', actual: new Words('none are recorded'), expected: new Words('some') }]
      : [];
  return [...wanted, ...waits, ...none];
}

/** A text that a message shows as it is. */
class Words {
  readonly #text: string;
  constructor(text: string) {
    this.#text = text;
  }
  toString(): string {
    return this.#text;
  }
}

function isOver({ endedAt, kind, leftMs }: FoundStep): boolean {
  return endedAt !== null || (kind === 'sleep' && leftMs !== undefined && leftMs <= 0);
}

function whyNotOver(step: FoundStep | undefined): string | undefined {
  if (step === undefined) return 'not recorded';
  if (step.error !== null) return `failed with ${step.error.name}: ${step.error.message}`;
  return isOver(step) ? undefined : `not over: the job waits in this ${step.kind}`;
}

function sameNames(actual: unknown, expected: unknown): boolean {
  if (!Array.isArray(actual) || !Array.isArray(expected)) return false;
  return JSON.stringify([...actual].sort()) === JSON.stringify([...expected].sort());
}
