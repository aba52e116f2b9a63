import { folded } from '../folded.ts';
import { h } from '../html.ts';
import { revealed, type Visit } from '../visit.ts';
import { Hidden, Shown } from './shown.tsx';
import { visible } from './text.tsx';

/** Something to look at. */
export interface Found {
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly fix: string;
  readonly value?: number | undefined;
}

interface FindingsProps {
  readonly visit: Visit;
  readonly findings: readonly Found[];
}

/** What `queue.check` has found and `queue.vitals` warns of, with what to do about it. */
export function Findings({ visit, findings }: FindingsProps) {
  return (
    <ul class="findings">
      {folded(findings).map(([first, ...others], index) => {
        const { code, severity, message } = first;
        const id = `${code}-${severity}-${index}`;
        return (
          <li class={`is-${severity}`}>
            <p>
              <span class="badge">{severity}</span> <Shown visit={visit} field="finding" text={message} />
            </p>
            {others.length === 0 ? null : (
              <details id={`all-${id}`}>
                <summary>And {others.length} more like it</summary>
                <Others visit={visit} findings={others} />
              </details>
            )}
            <details id={`fix-${id}`}>
              <summary>What to do</summary>
              {[...new Set([first, ...others].map(({ fix }) => fix))].map((fix) => (
                <Fix visit={visit} fix={fix} />
              ))}
            </details>
          </li>
        );
      })}
    </ul>
  );
}

/** What is like another one, in a line each. */
export function Others({ visit, findings }: { visit: Visit; findings: readonly { message: string }[] }) {
  return (
    <ul class="others">
      {findings.map(({ message }) => (
        <li>
          <Shown visit={visit} field="finding" text={message} />
        </li>
      ))}
    </ul>
  );
}

function Fix({ visit, fix }: { readonly visit: Visit; readonly fix: string }) {
  const shown = revealed(visit, undefined, 'finding', { text: fix });
  if (shown === null) return <Hidden />;
  return (
    <pre class="code wrap" tabindex={0}>
      <code>{visible(shown)}</code>
    </pre>
  );
}
