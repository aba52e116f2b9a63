import type { DashboardAction } from '../access.ts';
import { type Child, h } from '../html.ts';
import type { Visit } from '../visit.ts';
import { may } from '../visit.ts';
import { visible } from './text.tsx';

interface ActionProps {
  readonly visit: Visit;
  readonly action: DashboardAction;
  /** What is done, where the right has another name. */
  readonly path?: string;
  readonly fields: Readonly<Record<string, string | number>>;
  readonly label: string;
  /** Names what it is done to, for those who hear the page. */
  readonly of?: string;
  readonly tone?: 'plain' | 'main' | 'danger';
  readonly children?: Child;
}

/** A button that does something, as a form that needs no script; nothing for a user who may not do it. */
export function ActionForm(props: ActionProps) {
  const { visit, action, path = action, fields, label, of, tone = 'plain', children } = props;
  if (!may(visit, action)) return null;
  return (
    <form method="post" action={visit.links.to(`/actions/${path}`)} class="action">
      {Object.entries(fields).map(([name, value]) => (
        <input type="hidden" name={name} value={String(value)} />
      ))}
      <input type="hidden" name="back" value={visit.path} />
      {children}
      <button type="submit" class={`button is-${tone}`}>
        {label}
        {of === undefined ? null : <span class="unseen"> {visible(of)}</span>}
      </button>
    </form>
  );
}

interface AskingProps extends ActionProps {
  /** What stands in the question, above the button. */
  readonly question: string;
}

/** The same behind one more click, for what cannot be undone. */
export function AskingForm({ question, ...props }: AskingProps) {
  if (!may(props.visit, props.action)) return null;
  return (
    <details class="asking">
      <summary class="button">
        {props.label}
        {props.of === undefined ? null : <span class="unseen"> {visible(props.of)}</span>}
      </summary>
      <div class="asked">
        <p>{question}</p>
        <ActionForm {...props} tone={props.tone ?? 'danger'} />
      </div>
    </details>
  );
}
