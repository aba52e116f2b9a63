import type { FlowRecord } from '../../../index.ts';
import { countText } from '../duration.ts';
import { h } from '../html.ts';

interface FlowStateProps {
  readonly flow: Pick<FlowRecord, 'pending' | 'failed' | 'cancelReason'>;
}

/** Where a flow stands. */
export function FlowState({ flow: { pending, failed, cancelReason } }: FlowStateProps) {
  const [text, look] =
    pending > 0
      ? cancelReason === null
        ? ['in progress', 'running']
        : ['cancelling', 'cancelled']
      : failed > 0
        ? [`ended, ${countText(failed)} failed`, 'discarded']
        : ['completed', 'completed'];
  return <span class={`state is-${look}`}>{text}</span>;
}
