// The pages work without this. It copies, shows how far things are, and saves
// a mistyped name from being sent.
'use strict';

const each = (root, selector, act) => root.querySelectorAll(selector).forEach(act);

// Copying. Where the clipboard is not allowed (plain HTTP from another
// machine), the text is selected for the person to copy.
function enableCopy(root) {
  each(root, '[data-copy]', (button) => {
    button.hidden = false;
    button.addEventListener('click', async () => {
      const code = button.parentElement.querySelector('code');
      let said = 'Copied';
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
      } catch {
        getSelection().selectAllChildren(code);
        if (!document.execCommand('copy')) said = 'Selected';
      }
      button.textContent = said;
      announce(said);
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    });
  });
}

const voice = document.createElement('p');
voice.className = 'unseen';
voice.setAttribute('role', 'status');
document.body.append(voice);
function announce(text) { voice.textContent = text; }

// A destructive button waits until the name is typed; the server checks it all
// the same.
function enableConfirm(root) {
  each(root, '[data-confirm]', (input) => {
    const button = input.form.querySelector('button[type=submit]');
    if (button.disabled) return;
    const asTyped = (name) => name.normalize('NFC').replace(/\s+/g, ' ').trim();
    const check = () => { button.disabled = asTyped(input.value) !== asTyped(input.dataset.confirm); };
    input.addEventListener('input', check);
    check();
  });
}

// A form is sent once.
document.addEventListener('submit', (event) => {
  const form = event.target;
  if (form.method !== 'post' || form.dataset.upload) return;
  const button = event.submitter;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = 'yes';
  if (button && form.dataset.busy) button.textContent = form.dataset.busy;
});
addEventListener('pageshow', () => each(document, 'form[data-sent]', (form) => { delete form.dataset.sent; }));

// Times are written in UTC; the tip of each says the person's own.
function localTimes(root) {
  each(root, 'time[datetime]', (time) => {
    const at = new Date(time.dateTime);
    if (!isNaN(at)) time.title = at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' });
  });
}

// The value under the pointer.
function enableCharts(root) {
  each(root, '.chart', (chart) => {
    const times = chart.dataset.times.split(' ').map((n) => Number(chart.dataset.first) + n * chart.dataset.step);
    const values = chart.dataset.values.split(';');
    const from = Number(chart.dataset.from);
    const to = Number(chart.dataset.to);
    const svg = chart.querySelector('svg');
    const cursor = chart.querySelector('.cursor');
    const latest = chart.querySelector('[data-latest]');
    const now = latest.textContent;
    svg.addEventListener('pointermove', (event) => {
      const pointed = from + event.offsetX / svg.clientWidth * (to - from);
      const nearest = times.reduce((a, at, i) => Math.abs(at - pointed) < Math.abs(times[a] - pointed) ? i : a, 0);
      const x = Math.min((times[nearest] - from) / (to - from), 1) * svg.viewBox.baseVal.width;
      cursor.setAttribute('x1', x);
      cursor.setAttribute('x2', x);
      cursor.setAttribute('visibility', 'visible');
      const at = new Date(times[nearest] * 1000).toLocaleString(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' });
      latest.textContent = `${values[nearest]} · ${at}`;
    });
    svg.addEventListener('pointerleave', () => {
      cursor.setAttribute('visibility', 'hidden');
      latest.textContent = now;
    });
  });
}

// A click on the line of time fills in the moment; the page then shows what
// would happen.
function enablePick(root) {
  each(root, '[data-pick]', (line) => {
    const input = document.getElementById('at');
    if (!input) return;
    line.addEventListener('click', (event) => {
      if (event.target.closest('a')) return;
      const box = line.getBoundingClientRect();
      const part = Math.min(Math.max(((event.clientX - box.left) / box.width - 0.02) / 0.96, 0), 1);
      const seconds = Number(line.dataset.from) + part * (line.dataset.to - line.dataset.from);
      input.value = new Date(Math.ceil(seconds) * 1000).toISOString().slice(0, 19);
      input.dispatchEvent(new Event('input', { bubbles: true }));
      input.focus();
    });
  });
}

// Uploads, one after the other, each with its progress.
function enableUpload(root) {
  each(root, 'form[data-upload]', (form) => {
    const input = form.querySelector('input[type=file]');
    const list = form.querySelector('.uploads');
    form.querySelector('[data-drop-hint]').hidden = false;
    form.querySelector('button').hidden = true;
    input.multiple = true;
    input.required = false;
    const waiting = [];
    let sending = false;
    addEventListener('beforeunload', (event) => { if (sending) event.preventDefault(); });
    input.addEventListener('change', () => sendAll([...input.files]));
    form.addEventListener('dragover', (event) => { event.preventDefault(); form.classList.add('over'); });
    form.addEventListener('dragleave', () => form.classList.remove('over'));
    form.addEventListener('drop', (event) => {
      event.preventDefault();
      form.classList.remove('over');
      sendAll([...event.dataTransfer.files]);
    });
    form.addEventListener('submit', (event) => { event.preventDefault(); sendAll([...input.files]); });

    async function sendAll(chosen) {
      input.value = '';
      waiting.push(...chosen);
      if (sending || waiting.length === 0) return; // who is at it sends these, too
      sending = true;
      let failed = false;
      while (waiting.length > 0) failed = !await send(waiting.shift()) || failed;
      sending = false;
      if (!failed) location.assign(there('uploaded'));
    }

    function signIn() {
      waiting.length = 0;
      sending = false;
      location.assign(`/sign-in?undone=1&next=${encodeURIComponent(location.pathname + withoutDone())}`);
    }

    function there(done) {
      const to = new URL(form.dataset.upload, location.href);
      if (form.dataset.prefix) to.searchParams.set('prefix', form.dataset.prefix);
      to.searchParams.set('done', done);
      return to;
    }

    function send(file) {
      const row = document.createElement('li');
      const name = document.createElement('span');
      const state = document.createElement('span');
      const bar = document.createElement('progress');
      name.textContent = file.name;
      bar.max = 1;
      bar.setAttribute('aria-label', `Upload of ${file.name}`);
      row.append(name, state, bar);
      list.append(row);
      const to = new URL(form.dataset.upload, location.href);
      to.searchParams.set('key', form.dataset.prefix + file.name);
      return new Promise((resolve) => {
        const request = new XMLHttpRequest();
        const end = (text, ok) => {
          state.textContent = text;
          bar.hidden = true;
          row.classList.toggle('failed', !ok);
          resolve(ok);
        };
        request.upload.addEventListener('progress', (event) => {
          bar.value = event.loaded / Math.max(event.total, 1);
          state.textContent = `${Math.floor(100 * bar.value)} %`;
        });
        request.addEventListener('load', () => {
          end(request.status === 204 ? 'stored' : request.responseText || 'failed', request.status === 204);
          if (request.status === 401) signIn();
        });
        request.addEventListener('error', () => end('The connection was lost. Try again.', false));
        request.open('PUT', to);
        request.setRequestHeader('Content-Type', file.type || 'application/octet-stream');
        request.send(file);
      });
    }
  });
}

// What was typed or chosen, by a person or for one, is known by this mark.
document.addEventListener('input', (event) => { event.target.dataset.typed = ''; });

// A page on which something is under way follows it by server-sent events: each
// says that the page is another now, and it is asked for again. What the person
// is typing, confirming, selecting or sending stays until that is over.
let stream;

function follow() {
  if (stream || document.hidden || !document.querySelector('main[data-live]')) return;
  stream = new EventSource(location.pathname + withoutDone());
  stream.addEventListener('message', soon);
  stream.addEventListener('error', () => {
    if (stream?.readyState !== EventSource.CLOSED) return; // the browser connects again by itself
    unfollow();
    setTimeout(refresh, 3000); // says why
  });
}

function unfollow() {
  stream?.close();
  stream = undefined;
}

// A hidden page holds no connection: browsers have few for each host.
document.addEventListener('visibilitychange', () => (document.hidden ? unfollow() : follow()));
addEventListener('pagehide', unfollow);

// Not so soon that a page that has just come changes under the pointer.
let refreshed = performance.now();
let timer;

function soon() {
  clearTimeout(timer);
  timer = setTimeout(refresh, Math.max(0, 1500 - (performance.now() - refreshed)));
}

let refreshing = false;
let again = false; // the page has changed while it was asked for

async function refresh() {
  const main = document.querySelector('main[data-live]');
  if (refreshing) again = true;
  if (!main || refreshing || document.hidden) return;
  const held = 'input:focus, select:focus, textarea:focus, details.confirm[open], form[data-sent]';
  const selecting = () => !getSelection().isCollapsed && main.contains(getSelection().anchorNode);
  const later = () => { setTimeout(refresh, 1500); };
  if (selecting() || main.querySelector(held)) return later();
  refreshing = true;
  try {
    const answer = await fetch(location.pathname + withoutDone(), { headers: { Accept: 'text/html' } });
    if (answer.status >= 502 && answer.status <= 504) return later(); // a proxy's word for the same as below
    if (answer.redirected || !answer.ok) return location.reload();
    const next = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('main');
    if (main.querySelector(held)) return later(); // begun while the answer came
    const restore = position(main);
    main.replaceWith(next);
    enhance(next);
    restore(next);
    refreshed = performance.now();
    if (next.hasAttribute('data-live')) return follow();
    unfollow();
    announce(next.querySelector('.notice.bad')?.textContent ?? 'It has ended');
  } catch {
    later(); // the appliance may be on its way back
  } finally {
    refreshing = false;
    if (again) soon();
    again = false;
  }
}

// Returns what puts a person back to where they were in the page before: what
// is typed, what is open, how far it is scrolled, and what has the focus.
function position(main) {
  const parts = (root, selector) => [...root.querySelectorAll(selector)];
  const open = parts(main, 'details').map((details) => details.open);
  const scrolled = parts(main, '.scroll, .log').map((e) => [e.scrollLeft, e.scrollTop, e.scrollTop + e.clientHeight >= e.scrollHeight - 4]);
  const typed = parts(main, '[data-typed]');
  const twin = (a) => (b) => a.name === b.name && a.type === b.type && a.form?.getAttribute('action') === b.form?.getAttribute('action') && (!a.matches('[type=radio], [type=checkbox]') || a.value === b.value);
  const focusable = 'a[href], button, summary, [tabindex]';
  const focus = main.contains(document.activeElement) ? document.activeElement : null;
  const same = (e) => e.tagName === focus.tagName && e.getAttribute('href') === focus.getAttribute('href') && (focus.matches('.scroll, .log') || e.textContent === focus.textContent);
  return (next) => {
    parts(next, 'details').forEach((details, i) => { details.open = open[i] ?? details.open; });
    parts(next, '.scroll, .log').forEach((e, i) => {
      const [left, top, atEnd] = scrolled[i] ?? [0, 0, true];
      e.scrollLeft = left;
      if (!atEnd || !e.matches('[data-end]')) e.scrollTop = top;
    });
    typed.forEach((was) => {
      const is = parts(next, 'input, select, textarea').find(twin(was));
      if (!is) return;
      if (is.matches('[type=radio], [type=checkbox]')) is.checked = was.checked;
      else is.value = was.value;
      // What is sent is compared with what the person saw, not with what the page shows now.
      const [seen, now] = [was.form?.elements.if_match, is.form?.elements.if_match];
      if (seen && now) now.value = seen.value;
      is.dispatchEvent(new Event('input', { bubbles: true })); // so that it is checked, and kept the next time, too
    });
    if (focus) (focus === main ? next : parts(next, focusable).find(same) ?? next).focus({ preventScroll: true });
  };
}

function withoutDone() {
  const query = new URLSearchParams(location.search);
  query.delete('done');
  return query.size ? `?${query}` : '';
}

function enhance(root) {
  enableCopy(root);
  enableConfirm(root);
  enableCharts(root);
  enableUpload(root);
  enablePick(root);
  localTimes(root);
  each(root, '[data-end]', (log) => { log.scrollTop = log.scrollHeight; });
}

enhance(document);
each(document, 'nav [aria-current]', (here) => here.scrollIntoView({ block: 'nearest', inline: 'center' }));
follow();
// A page that is loaded again does not say again what was done.
if (location.search.includes('done=')) history.replaceState(null, '', location.pathname + withoutDone());
