import { expect, test } from 'vitest';
import { type Child, Fragment, h } from '../../src/entries/dashboard/html.ts';

const text = (child: Child) => String(h('p', null, child));

test('texts are escaped, in elements and in attributes; markup is not escaped again', () => {
  expect(text('<b>&"\'')).toBe('<p>&lt;b&gt;&amp;&quot;&#39;</p>');
  expect(String(h('a', { href: '"><script>' }))).toBe('<a href="&quot;&gt;&lt;script&gt;"></a>');
  expect(text(h('b', null, '<'))).toBe('<p><b>&lt;</b></p>');
});

test('lists are joined, and what is nothing is left out', () => {
  expect(text([1, ['a', null, undefined, false, true], h('i', null)])).toBe('<p>1a<i></i></p>');
  expect(text(h(Fragment, null, 'a', 'b'))).toBe('<p>ab</p>');
});

test('attributes are there or not, or have a text', () => {
  expect(String(h('input', { checked: true, hidden: false, name: undefined, value: 0 }))).toBe(
    '<input checked="" value="0"/>',
  );
  expect(String(h('tr', { 'data-row': true, 'aria-hidden': 'true', __source: {} }))).toBe(
    '<tr data-row="true" aria-hidden="true"></tr>',
  );
});

test('a component gets its properties and what stands in it', () => {
  const Named = ({ name, children }: { readonly name: string; readonly children?: Child }) =>
    h('li', { title: name }, children);
  expect(String(h(Named, { name: '<' }, 'a', h('b', null, '&')))).toBe('<li title="&lt;">a<b>&amp;</b></li>');
  expect(text(h(Named, { name: 'n' }))).toBe('<p><li title="n"></li></p>');
});
