/** One line of what Prometheus scrapes. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The lines of one metric. */
export function samplesOf(text: string, name: string): Sample[] {
  return linesOf(text).flatMap((line) => {
    const [, metric, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    return metric === name ? [{ labels: labelsIn(labels), value: Number(value) }] : [];
  });
}

/** The sum over the lines of a metric that have these labels; `undefined` when there is none. */
export function sumOf(
  text: string,
  name: string,
  labels: Readonly<Record<string, string>>,
): number | undefined {
  const found = samplesOf(text, name).filter((sample) =>
    Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
}

/** All metrics of ours and their labels. */
export function namesIn(text: string): { metrics: Set<string>; labels: Set<string> } {
  const metrics = new Set<string>();
  const labels = new Set<string>();
  for (const line of linesOf(text)) {
    const [, metric = '', given = ''] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    if (!/^(messaging|drizzle_queue)_/.test(metric)) continue;
    metrics.add(metric);
    for (const label of Object.keys(labelsIn(given))) labels.add(label);
  }
  return { metrics, labels };
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

function labelsIn(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]),
  );
}
