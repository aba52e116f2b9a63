import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../docs/pages.ts';

/** The expressions of all panels of the dashboard. */
export async function readPanels(): Promise<string[]> {
  const dashboard: { panels: { targets?: { expr: string }[] }[] } = JSON.parse(
    await readFile(join(root, 'docs/operate/grafana-dashboard.json'), 'utf8'),
  );
  return dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}

/** The expressions of all alert rules, which stand in a line each. */
export async function readRules(): Promise<string[]> {
  const rules = await readFile(join(root, 'docs/operate/prometheus-alerts.yml'), 'utf8');
  const expressions = [...rules.matchAll(/^ {8}expr: (.+)$/gm)].map(([, expression = '']) => expression);
  const alerts = rules.match(/^ {6}- alert: \w+$/gm) ?? [];
  if (alerts.length !== expressions.length) throw new Error('a rule has no expression that is a line');
  return expressions;
}

/** What stands before a bracket, and is no metric; and words. */
const FUNCTIONS = /^(sum|max|min|rate|increase|histogram_quantile|by|and|or|unless)$/;

/** The metrics and the labels of a PromQL expression. */
export function used(expression: string): { names: string[]; labels: string[] } {
  const labels: string[] = [];
  const rest = expression
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')
    .replaceAll(/\bby \(([^)]*)\)/g, (_, list: string) => {
      labels.push(...list.split(',').map((label) => label.trim()));
      return ' ';
    })
    .replaceAll(/\{([^}]*)\}/g, (_, matchers: string) => {
      labels.push(...matchers.split(',').map((matcher) => /^\s*(\w+)/.exec(matcher)?.[1] ?? matcher));
      return ' ';
    })
    .replaceAll(/\[[^\]]*\]/g, ' ');
  const words = rest.match(/[a-z_]\w*/gi) ?? [];
  return { names: words.filter((word) => !FUNCTIONS.test(word)), labels };
}
