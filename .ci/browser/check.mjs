// Checks a report or a history page in a browser: no errors, no requests to other hosts, no page wider than the screen,
// no tiny text, no violation of axe-core's rules, and results on the first screen.
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [report, out] = process.argv.slice(2).map(path => resolve(path));
const faults = [];
const fault = text => { faults.push(text); console.error('FAULT', text); };

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const LIMIT_BYTES = 1_000_000;
const SMALLEST_PX = 9;
// A report starts with a table of results, a history with a figure. Both follow a heading with a fixed anchor.
const isHistory = readFileSync(report, 'utf8').includes('<h2 id="machine-1">');
const FIRST = isHistory ? '#figures ~ .figures figure' : '#gate ~ .scroll table, #results ~ .scroll table';
const [FIGURES, CELLS] = isHistory
  ? ['#figures ~ .figures figure', '#machine-1 ~ .scroll td']
  : ['#results ~ .figures figure', '#results ~ .scroll td'];

mkdirSync(out, { recursive: true });
const size = statSync(report).size;
if (size >= LIMIT_BYTES) fault(`${size} bytes, ${LIMIT_BYTES} is the limit`);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

/** Opens the report and collects faults with the name of the view. */
async function open(name, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on('console', message => { if (['error', 'warning'].includes(message.type())) fault(`${name}: console: ${message.text()}`); });
  page.on('pageerror', error => fault(`${name}: script: ${error.message}`));
  page.on('requestfailed', request => fault(`${name}: failed: ${request.url()}`));
  page.on('request', request => {
    const url = request.url();
    if (url !== pathToFileURL(report).href && !url.startsWith('data:')) fault(`${name}: request to ${url}`);
  });
  await page.goto(pathToFileURL(report).href, { waitUntil: 'load' });
  return { context, page };
}

try {
  for (const width of [1280, 400]) {
    for (const colorScheme of ['light', 'dark']) {
      const name = `${width}-${colorScheme}`;
      const { context, page } = await open(name, { viewport: { width, height: 900 }, colorScheme, deviceScaleFactor: width === 400 ? 2 : 1 });
      const first = page.locator(FIRST).first();
      const results = await first.count() > 0 ? await first.boundingBox() : null;
      if (results === null || results.y > 800) fault(`${name}: the first result is at ${results?.y} px, not on the first screen`);
      if (await page.locator('details[open]').count() > 0) fault(`${name}: a section is open at first`);
      await page.screenshot({ path: join(out, `${name}-first.png`) });
      const seen = await page.evaluate(() => {
        // Check the labels in collapsed sections.
        document.querySelectorAll('details').forEach(details => { details.open = true; });
        const wide = document.documentElement.scrollWidth;
        const texts = [...document.querySelectorAll('svg text')].map(text => {
          const matrix = text.getScreenCTM();
          return { px: parseFloat(getComputedStyle(text).fontSize) * Math.hypot(matrix.a, matrix.b), text: text.textContent };
        });
        // Labels must not leave their panels, because they would be cut off.
        const cut = [...document.querySelectorAll('.panels svg')].flatMap(svg => {
          const frame = svg.getBoundingClientRect();
          return [...svg.querySelectorAll('text')].filter(text => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
          }).map(text => text.textContent);
        });
        // Labels of one panel must not overlap.
        const over = [...document.querySelectorAll('.panels svg')].flatMap(svg => {
          const boxes = [...svg.querySelectorAll('text')].map(text => [text.getBoundingClientRect(), text.textContent]);
          const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
          return boxes.flatMap(([a, s], i) => boxes.slice(i + 1).filter(([b]) => meet(a, b)).map(([, t]) => `${s} / ${t}`));
        });
        return { wide, texts, cut, over, figures: document.querySelectorAll('figure').length, ground: getComputedStyle(document.body).backgroundColor };
      });
      if (seen.wide > width) fault(`${name}: the page is ${seen.wide} px wide`);
      if (seen.figures === 0) fault(`${name}: no figure`);
      for (const { px, text } of seen.texts.filter(text => text.px < SMALLEST_PX)) fault(`${name}: "${text}" is ${px.toFixed(1)} px high`);
      for (const text of seen.cut) fault(`${name}: "${text}" leaves its panel`);
      for (const text of seen.over) fault(`${name}: labels overlap: ${text}`);
      const dark = seen.ground.match(/\d+/g).slice(0, 3).every(part => Number(part) < 80);
      if (dark !== (colorScheme === 'dark')) fault(`${name}: the ground is ${seen.ground}`);
      await page.evaluate(AXE);
      const violations = (await page.evaluate(() => axe.run())).violations;
      for (const { id, help, nodes } of violations) fault(`${name}: axe: ${id}: ${help}: ${nodes[0].html} (${nodes.length})`);
      const smallest = Math.min(...seen.texts.map(text => text.px));
      console.log(`${name}: ${seen.figures} figures, ${seen.texts.length} labels, the smallest ${smallest.toFixed(1)} px`);
      await page.screenshot({ path: join(out, `${name}.png`), fullPage: true });

      if (name === '1280-light') {
        const mark = page.locator('.panels svg .m').first();
        if (await mark.count() > 0) {
          await mark.scrollIntoViewIfNeeded();
          await mark.hover({ force: true });
          if (!(await page.locator('.tip').isVisible())) fault('pointing at a marker shows nothing');
          else await page.screenshot({ path: join(out, 'hover.png') });
        }
        const key = page.locator('[data-key]').first();
        if (await key.count() > 0 && await key.getAttribute('role') === 'button') {
          const series = await key.getAttribute('data-key');
          const group = page.locator('figure').filter({ has: key }).first().locator(`[data-s="${series}"]`).first();
          await key.click();
          if (await group.isVisible()) fault('a series that was switched off is still there');
          await key.press('Enter');
          if (!(await group.isVisible())) fault('a series that was switched on again is not there');
        }
      }
      await context.close();
    }
  }
  const { context, page } = await open('without script', { viewport: { width: 1280, height: 900 }, javaScriptEnabled: false });
  if (await page.locator('figure svg path').count() === 0) fault('without script: nothing is drawn');
  if (await page.locator(FIGURES).count() === 0) fault('no figure follows the results');
  if (await page.locator(CELLS).count() === 0) fault('without script: no table');
  await context.close();
} finally {
  await browser.close();
}
console.log(`${size} bytes; ${faults.length} faults; screenshots in ${out}`);
process.exitCode = faults.length ? 1 : 0;
