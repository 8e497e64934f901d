"use strict";
// What the pages share. template.py writes the data.
const $ = (id) => document.getElementById(id);
const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const data = JSON.parse($("data").textContent);
const BLOCK = 100; // units that the browser lays out together when they become visible
const named = data.unit[0].toUpperCase() + data.unit.slice(1);
