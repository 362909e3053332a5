// The page is whole without this: it adds a box for the value nearest to the pointer, and series that can be hidden.
(() => {
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  document.body.append(tip);

  for (const svg of document.querySelectorAll('.panels svg')) {
    const marks = [...svg.querySelectorAll('.m')].flatMap(mark => {
      const title = mark.querySelector('title');
      if (!title) return [];
      const text = title.textContent;
      title.remove(); // else the browser shows a box of its own over ours
      return [{ shape: mark.matches('.k') ? mark : mark.querySelector('.k'), text }];
    });
    const show = event => {
      let best = null;
      let distance = 24;
      for (const mark of marks) {
        const box = mark.shape.getBoundingClientRect();
        if (!box.width) continue;
        const d = Math.hypot(event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2);
        if (d < distance) { best = { box, text: mark.text }; distance = d; }
      }
      tip.hidden = !best;
      if (!best) return;
      tip.textContent = best.text;
      const left = Math.min(best.box.x + 14, innerWidth - tip.offsetWidth - 8);
      const above = best.box.y - tip.offsetHeight - 10;
      tip.style.left = Math.max(8, left) + 'px';
      tip.style.top = (above > 4 ? above : best.box.bottom + 10) + 'px';
    };
    if (marks.length) {
      svg.addEventListener('pointermove', show);
      svg.addEventListener('pointerdown', show);
      svg.addEventListener('pointerleave', () => { tip.hidden = true; });
    }
  }

  // A link to a folded section opens it.
  const open = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    const section = target && target.closest('details');
    if (section) { section.open = true; target.scrollIntoView(); }
  };
  addEventListener('hashchange', open);
  open();

  for (const figure of document.querySelectorAll('figure')) {
    const keys = figure.querySelectorAll('[data-key]');
    if (keys.length < 2) continue;
    for (const key of keys) {
      const drawn = figure.querySelectorAll('[data-s="' + key.dataset.key + '"]');
      const emphasise = on => {
        figure.classList.toggle('dim', on && key.getAttribute('aria-pressed') === 'true');
        for (const group of drawn) group.classList.toggle('on', on);
      };
      const toggle = () => {
        const shown = key.getAttribute('aria-pressed') !== 'true';
        key.setAttribute('aria-pressed', String(shown));
        for (const group of drawn) group.style.display = shown ? '' : 'none';
        emphasise(shown && key.matches(':hover'));
      };
      key.setAttribute('role', 'button');
      key.setAttribute('tabindex', '0');
      key.setAttribute('aria-pressed', 'true');
      key.addEventListener('click', toggle);
      key.addEventListener('keydown', event => {
        if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); toggle(); }
      });
      key.addEventListener('mouseenter', () => emphasise(true));
      key.addEventListener('mouseleave', () => emphasise(false));
    }
  }
})();
