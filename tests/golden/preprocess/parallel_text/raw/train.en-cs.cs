IMSEC
Vrátí sekans komplexního čísla. Sekans komplexního čísla lze vyjádřit jako:
Výsledkem je řetězec se znakem "i" nebo "j" představujícím imaginární jednotku.
Tato funkce je součástí standardu Open Document Format for Office Applications (OpenDocument) verze 1.2 (ISO/IEC 26300:2-2015).
Tato funkce je k dispozici od verze LibreOffice 3.6.
Syntaxe

Převede řetězec představující číslo na číselnou podobu. Představuje-li řetězec platné datum, čas nebo datum a čas, vrátí se odpovídající pořadové číslo data a času.
Syntaxe
Text: Řetězec (v uvozovkách), číslo nebo odkaz na buňku s některým z těchto typů, které obsahují hodnotu, jež se má převést.
Pokud je argumentem Text řetězec představující datum, čas, měnu nebo číselnou hodnotu s desetinným oddělovačem či oddělovačem tisíců, řetězec musí odpovídat aktuálnímu národnímu prostředí.
Příklady
=VALUE("1234") vrátí číselnou hodnotu 1234.

Formátování sešitů
Formátování textu v sešitu
Text, který chcete formátovat, označte jako blok.
Nastavte požadované atributy textu na liště Formátování. Nebo vyberte Formát - Buňky. Objeví se dialog Formát buněk, kde je na kartě Písmo možné nastavit různé atributy textu.
Formátování čísel v sešitu
Buňky obsahující čísla, která chcete formátovat, označte jako blok.

Zaokrouhlování čísel
V LibreOffice Calc jsou čísla zobrazeny zaokrouhlená na dvě desetinná místa.
Změna počtu desetinných míst ve vybraných buňkách
Označte všechny buňky, které chcete upravit.
Zvolte Formát - Buňky a přepněte na kartu Čísla.
V poli Kategorie vyberte Číslo. V části Možnosti změňte počet v poli Desetinná místa a uzavřete dialog klepnutím na OK.
