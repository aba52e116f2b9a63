import { type Child, h } from '../html.ts';

/** What stands where nothing is: why, and the code that would change it. */
export function Empty({
  title,
  code,
  children,
}: {
  readonly title: string;
  readonly code?: string;
  readonly children?: Child;
}) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children === undefined ? null : <p class="muted">{children}</p>}
      {code === undefined ? null : (
        <pre class="code" tabindex={0}>
          <code>{code}</code>
        </pre>
      )}
    </div>
  );
}
