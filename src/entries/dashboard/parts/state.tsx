import type { JobState } from '../../../index.ts';
import { h } from '../html.ts';

/** The state of a job, as a word with a dot of its colour. */
export function State({
  state,
  cancelling = false,
}: {
  readonly state: JobState;
  readonly cancelling?: boolean;
}) {
  return <span class={`state is-${state}`}>{cancelling ? 'cancelling' : state}</span>;
}
