import type { LimitRecord } from '../../../index.ts';
import { h } from '../html.ts';
import { isPlain, type Visit } from '../visit.ts';
import { ActionForm } from './action-form.tsx';
import { visible } from './text.tsx';

interface LimitFormProps {
  readonly visit: Visit;
  readonly limit: LimitRecord;
}

/** Sets one limit, or takes back what was set. */
export function LimitForm({ visit, limit }: LimitFormProps) {
  const { queue, kind, group, override } = limit;
  const fields = { queue, ...(kind !== undefined && { kind }), ...(group !== undefined && { group }) };
  // A form says which group it is about, so there is none where its name is not shown.
  if (isOfSecretGroup(visit, limit)) return null;
  const of = `for ${nameOf(limit)} of ${queue}`;
  return (
    <details class="set" id={`limit-${encodeURIComponent(JSON.stringify([queue, kind, group]))}`}>
      <summary>
        Change<span class="unseen"> {visible(of)}</span>
      </summary>
      <ActionForm visit={visit} action="limit" fields={fields} label="Set" of={of} tone="main">
        <Settings limit={limit} />
      </ActionForm>
      {override === undefined ? null : (
        <ActionForm
          visit={visit}
          action="limit"
          path="remove-limit"
          fields={fields}
          label="Back to the declared limit"
          of={of}
        />
      )}
    </details>
  );
}

/** Sets the limit of a single group by its name. */
export function GroupLimitForm({ visit, queue }: { readonly visit: Visit; readonly queue: string }) {
  return (
    <details class="set" id={`limit-of-group-${encodeURIComponent(queue)}`}>
      <summary>Set a limit of one group</summary>
      <ActionForm visit={visit} action="limit" fields={{ queue }} label="Set" of={`in ${queue}`} tone="main">
        <div class="setting">
          <label>
            Group
            <input type="text" name="group" required maxlength={200} autocomplete="off" />
          </label>
        </div>
        <Settings limit={undefined} />
      </ActionForm>
    </details>
  );
}

/** What is left empty is as the code declares it. */
function Settings({ limit }: { readonly limit: LimitRecord | undefined }) {
  const { concurrency, rate, weight } = limit?.override ?? {};
  const ofGroup = limit === undefined || limit.group !== undefined;
  return (
    <div class="setting">
      {limit?.declared.serial === undefined ? (
        <Setting name="concurrency" label="At once" value={concurrency} max={1_000_000} />
      ) : null}
      <Setting name="rate" label="Starts" value={rate?.limit} max={1_000_000} />
      <Setting name="per" label="in seconds" value={rate && rate.perMs / 1_000} max={86_400} step="any" />
      {ofGroup ? <Setting name="weight" label="Weight" value={weight} max={1_000} /> : null}
    </div>
  );
}

interface SettingProps {
  readonly name: string;
  readonly label: string;
  readonly value: number | undefined;
  readonly max: number;
  readonly step?: string;
}

function Setting({ name, label, value, max, step = '1' }: SettingProps) {
  return (
    <label>
      {label}
      <input
        type="number"
        name={name}
        min={step === 'any' ? '0.1' : '1'}
        max={max}
        step={step}
        value={value}
        inputmode="decimal"
      />
    </label>
  );
}

/** Whether a limit is of a single group whose name is not shown as it is. */
export function isOfSecretGroup(visit: Visit, { group }: LimitRecord): boolean {
  return group !== undefined && group !== '*' && !isPlain(visit, undefined, 'group', { text: group });
}

/** What a limit is of. */
export function nameOf({ kind, group }: LimitRecord): string {
  if (kind !== undefined) return `kind ${kind}`;
  return group === undefined ? 'the queue' : group === '*' ? 'each group' : `group ${group}`;
}
