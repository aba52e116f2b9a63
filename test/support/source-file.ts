import ts from 'typescript';

/** What one source file takes from others and from its surroundings. */
export interface SourceFacts {
  /** The specifiers of everything it imports, re-exports, requires or names in an `import('…')`, types included. */
  readonly imports: readonly string[];
  /** The globals that it uses in code, such as `fetch` or `Date.now`; `new Date()` when that is asked for the time. */
  readonly globals: readonly string[];
}

/** Reads TypeScript with its own parser, so that neither comments nor texts are taken for code. */
export function readSource(path: string, text: string): SourceFacts {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const imports = new Set<string>();
  const globals = new Set<string>();
  const visit = (node: ts.Node): void => {
    const specifier = specifierOf(node);
    if (specifier !== undefined) imports.add(specifier);
    const global = globalOf(node);
    if (global !== undefined) globals.add(global);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return { imports: [...imports], globals: [...globals] };
}

function specifierOf(node: ts.Node): string | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return textOf(node.moduleSpecifier);
  if (ts.isImportTypeNode(node))
    return ts.isLiteralTypeNode(node.argument) ? textOf(node.argument.literal) : undefined;
  if (ts.isExternalModuleReference(node)) return textOf(node.expression);
  const isCall =
    ts.isCallExpression(node) &&
    (node.expression.kind === ts.SyntaxKind.ImportKeyword || node.expression.getText() === 'require');
  // What cannot be read cannot be allowed either.
  return isCall ? (textOf(node.arguments[0]) ?? node.getText()) : undefined;
}

function textOf(node: ts.Node | undefined): string | undefined {
  return node !== undefined && ts.isStringLiteralLike(node) ? node.text : undefined;
}

/** The name of what an expression refers to, when that could be a global: `fetch`, `Date.now`, `new Date()`. */
function globalOf(node: ts.Node): string | undefined {
  if (!ts.isIdentifier(node) || !isReference(node)) return undefined;
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return `${node.text}.${parent.name.text}`;
  if (ts.isNewExpression(parent) && parent.expression === node) {
    return (parent.arguments?.length ?? 0) === 0 ? `new ${node.text}()` : undefined;
  }
  return node.text;
}

/** Whether an identifier stands for a value, as opposed to naming a declaration, a property or a type. */
function isReference(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node;
  if (ts.isBindingElement(parent) || ts.isParameter(parent) || ts.isVariableDeclaration(parent)) {
    return parent.initializer === node;
  }
  if (ts.isShorthandPropertyAssignment(parent)) return true;
  return ts.isExpression(parent) || ts.isStatement(parent) || ts.isTemplateSpan(parent);
}
