import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { dated, sectionOf } from '../../scripts/changelog-sections.ts';

const CHANGELOG = `# Changelog

## [Unreleased]

To become 0.2.0.

### Added

- A thing.

## [0.1.0] - 2026-01-01

### Added

- The first.
`;

test('what is unreleased becomes the section of the version, without the forecast', () => {
  const changelog = dated(CHANGELOG, '0.2.0', '2026-02-03');
  expect(changelog).toBe(CHANGELOG.replace('To become 0.2.0.\n\n', '## [0.2.0] - 2026-02-03\n\n'));
  expect(sectionOf(changelog, '0.2.0')).toBe('### Added\n\n- A thing.');
  expect(sectionOf(changelog, '0.1.0')).toBe('### Added\n\n- The first.');
});

test('a release without a line in the changelog, or made twice, is refused', () => {
  const changelog = dated(CHANGELOG, '0.2.0', '2026-02-03');
  expect(() => dated(changelog, '0.3.0', '2026-02-04')).toThrow('Nothing is unreleased');
  expect(() => dated(changelog, '0.2.0', '2026-02-04')).toThrow('has a section 0.2.0');
  expect(() => dated('# Changelog\n', '0.2.0', '2026-02-04')).toThrow('has no "## [Unreleased]"');
  expect(() => sectionOf(changelog, '0.3.0')).toThrow('has no section 0.3.0');
});

test('the changelog as it is can be released', () => {
  const changelog = dated(readFileSync('CHANGELOG.md', 'utf8'), '99.0.0', '2099-01-01');
  expect(changelog).toContain('\n## [Unreleased]\n\n## [99.0.0] - 2099-01-01\n\n');
  expect(sectionOf(changelog, '99.0.0').length).toBeGreaterThan(20);
});
