const UNRELEASED = '## [Unreleased]';
/** What the section says of the version that it becomes. */
const FORECAST = /^To become .*\n\n?/;

/**
 * The changelog with its "Unreleased" made the section of a version, and an empty one above.
 *
 * @param date such as `2026-11-23`
 * @throws Error when nothing stands there, or the version has a section already
 */
export function dated(changelog: string, version: string, date: string): string {
  if (headingOf(changelog, version) !== undefined) throw new Error(`CHANGELOG.md has a section ${version}`);
  const [above = '', below] = changelog.split(`\n${UNRELEASED}\n`);
  if (below === undefined) throw new Error(`CHANGELOG.md has no "${UNRELEASED}"`);
  const text = below.trimStart().replace(FORECAST, '');
  if (text.trim() === '' || text.startsWith('## ')) throw new Error('Nothing is unreleased in CHANGELOG.md');
  return `${above}\n${UNRELEASED}\n\n## [${version}] - ${date}\n\n${text}`;
}

/** The text of a version's section. @throws Error when there is none */
export function sectionOf(changelog: string, version: string): string {
  const heading = headingOf(changelog, version);
  if (heading === undefined) throw new Error(`CHANGELOG.md has no section ${version}`);
  const [, text = ''] = changelog.split(`${heading}\n`);
  return text.split(/^## /m)[0]?.trim() ?? '';
}

function headingOf(changelog: string, version: string): string | undefined {
  return changelog.split('\n').find((line) => line.startsWith(`## [${version}] - `));
}
