import { Foreign, visible } from './text.tsx';

/** Something to look at. */
export interface Found {
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly fix: string;
}

/** What `queue.check` has found and `queue.vitals` warns of, with what to do about it. */
export function Findings({ findings }: { readonly findings: readonly Found[] }) {
  return (
    <ul class="findings">
      {findings.map(({ code, severity, message, fix }, index) => (
        <li class={`is-${severity}`}>
          <p>
            <span class="badge">{severity}</span> <Foreign text={message} />
          </p>
          <details id={`fix-${code}-${index}`}>
            <summary>What to do</summary>
            <pre class="code wrap" tabindex={0}>
              <code>{visible(fix)}</code>
            </pre>
          </details>
        </li>
      ))}
    </ul>
  );
}
