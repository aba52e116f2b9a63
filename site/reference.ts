import { Application, type DeclarationReflection, type TypeDocOptions } from 'typedoc';
import type { PluginOptions } from 'typedoc-plugin-markdown';
import { mendAnchors } from './anchors.ts';
import { ENTRIES } from './entries.ts';
import { NOT_EXPORTED } from './not-exported.ts';
import { repository, root } from './repository.ts';

const options: TypeDocOptions & PluginOptions = {
  plugin: ['typedoc-plugin-markdown'],
  entryPoints: [...ENTRIES.values()].map((file) => root + file),
  tsconfig: `${root}site/tsconfig.reference.json`,
  basePath: root,
  readme: 'none',
  out: `${root}site/api`,
  disableGit: true,
  // {path} begins at the folder that all entries are in.
  sourceLinkTemplate: `${repository}/blob/main/src/{path}#L{line}`,
  excludePrivate: true,
  excludeInternal: true,
  excludeExternals: true,
  treatWarningsAsErrors: true,
  intentionallyNotExported: NOT_EXPORTED,
  validation: { notExported: true, invalidLink: true, invalidPath: true, rewrittenLink: true },
  router: 'module',
  entryFileName: 'index',
  hideBreadcrumbs: true,
  hidePageHeader: true,
  useCodeBlocks: true,
  expandObjects: true,
  // Not as tables, whose rows have no headings, but count among the anchors that links lead to.
  parametersFormat: 'list',
  propertiesFormat: 'list',
};

/**
 * Writes the reference from the docstrings of all entries, one page for each.
 * @throws Error when something public has no docstring, or a link in one leads nowhere
 */
export async function writeReference(): Promise<void> {
  const app = await Application.bootstrapWithPlugins(options);
  const project = await app.convert();
  if (project === undefined) throw new Error('The sources do not compile');
  for (const module of project.children ?? []) {
    const file = module.sources?.[0]?.fileName;
    const name = [...ENTRIES].find(([, path]) => path === file)?.[0];
    if (name === undefined) throw new Error(`${file} is no entry`);
    module.name = name;
    for (const exported of module.children ?? []) {
      if (!isDocumented(exported)) app.logger.error(`${name}: ${exported.name} has no docstring`);
    }
  }
  app.validate(project);
  await app.generateOutputs(project);
  mendAnchors(`${root}site/api`);
  if (app.logger.hasErrors() || app.logger.hasWarnings())
    throw new Error('The reference has the faults above');
}

/** Its members are read with it, and need words only where their names and types do not say it. */
function isDocumented(exported: DeclarationReflection): boolean {
  const { signatures = [] } = exported;
  return exported.isReference() || exported.hasComment() || signatures.some((one) => one.hasComment());
}
